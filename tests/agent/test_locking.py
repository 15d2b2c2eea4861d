"""One agent per key, and one journal per key: with real processes."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from worker_agent.locking import Holder, JournalError, KeyInUseError, held_key, holder_of
from worker_agent.settings import Home

# Another one each time: all of the machine sees which are in use.
ADDRESS, OTHER = ("0x" + secrets.token_hex(20) for _ in range(2))
_AGENT = """
import sys
from pathlib import Path
from worker_agent.locking import held_key
from worker_agent.settings import Home
with held_key(sys.argv[1], Home(Path(sys.argv[2]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make(tmp_path / "home")


def make(folder: Path) -> Home:
    folder.mkdir()
    return Home(folder)


@contextmanager
def running_agent(address: str, home: Home) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", _AGENT, address, str(home.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.communicate()


def use(home: Home, *, new_journal: bool = False, sent: int = 0) -> None:
    with held_key(ADDRESS, home, new_journal=new_journal, count_sent=lambda: sent):
        assert home.chain_store.exists()


def test_second_agent_with_the_key_is_refused_with_the_reason(home: Home, tmp_path: Path) -> None:
    other = make(tmp_path / "other")
    with running_agent(ADDRESS, home) as first:
        holder = holder_of(ADDRESS, other)
        with pytest.raises(KeyInUseError) as refused:
            use(other)

    assert holder is not None
    assert (holder.pid, holder.home) == (first.pid, str(home.folder))
    assert f"pid {first.pid} in {home.folder}" in str(refused.value)
    assert holder_of(ADDRESS, other) is None


def test_second_process_in_the_folder_is_refused_wherever_it_keeps_its_state(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_agent(ADDRESS, home):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        assert holder_of(ADDRESS, home) is not None
        with pytest.raises(KeyInUseError):
            use(home)


def test_second_agent_with_another_home_and_another_state_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a service and a shell have, or two users."""
    other, me = make(tmp_path / "other"), pwd.getpwuid(os.getuid()).pw_name
    with running_agent(ADDRESS, home) as first:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        holder = holder_of(ADDRESS, other)
        with pytest.raises(KeyInUseError, match=f"pid {first.pid} of the user {me} in a folder"):
            use(other)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert holder is not None
        assert holder.pid == first.pid
        assert holder_of(ADDRESS, other) is None
        use(other)


def test_many_looks_hide_the_pid_and_not_the_agent(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes the connections of those who look, and only so many wait in line."""
    other = make(tmp_path / "other")
    with running_agent(ADDRESS, home):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
        while (holder := holder_of(ADDRESS, other)) is not None and holder.pid:
            pass
        with pytest.raises(KeyInUseError, match="the agent whose pid is not known in a folder"):
            use(other)


def test_command_that_an_error_names_can_be_typed() -> None:
    known = Holder(7, "/home/yard")
    assert known.command("trainyard worker withdraw") == (
        "'trainyard worker withdraw --home /home/yard'"
    )
    assert Holder(7, user="yard").command("trainyard worker withdraw") == (
        "'trainyard worker withdraw' as yard, with the --home it has"
    )


def test_agents_with_keys_of_their_own_run_side_by_side(home: Home, tmp_path: Path) -> None:
    with running_agent(ADDRESS, home), held_key(OTHER, make(tmp_path / "other")):
        assert holder_of(ADDRESS, home) is not None


def test_killed_agent_leaves_no_lock(home: Home) -> None:
    with running_agent(ADDRESS, home) as agent:
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        use(home)


def test_same_journal_is_good_for_ever(home: Home) -> None:
    for _ in range(3):
        use(home)


def test_key_that_was_used_on_another_machine_is_refused_until_told(home: Home) -> None:
    for _ in range(2):
        with pytest.raises(JournalError, match=r"has sent 3 transactions.* --new-journal"):
            use(home, sent=3)
    use(home, new_journal=True, sent=3)
    use(home, sent=4)


def test_key_that_comes_with_its_journal_is_known(home: Home, tmp_path: Path) -> None:
    (home.folder / "journal.id").write_text("0" * 32)
    use(home, sent=3)


def test_lost_journal_is_refused_until_told(home: Home) -> None:
    use(home)
    home.chain_store.unlink()
    with pytest.raises(JournalError, match=r"missing: .* sent twice.* --new-journal"):
        use(home)
    use(home, new_journal=True)
    use(home)


def test_key_in_another_folder_is_refused_until_told(home: Home, tmp_path: Path) -> None:
    use(home)
    other = make(tmp_path / "other")
    with pytest.raises(JournalError, match="which is not the one in"):
        use(other)
    use(other, new_journal=True)
    use(other)
    with pytest.raises(JournalError, match="which is not the one in"):
        use(home)


def test_folder_that_was_removed_and_made_again_is_refused(home: Home) -> None:
    use(home)
    shutil.rmtree(home.folder)
    home.folder.mkdir()
    with pytest.raises(JournalError):
        use(home)


def test_folder_that_was_moved_is_the_same(home: Home, tmp_path: Path) -> None:
    use(home)
    use(Home(home.folder.rename(tmp_path / "moved")))


def test_copy_of_the_folder_is_refused(home: Home, tmp_path: Path) -> None:
    use(home)
    shutil.copytree(home.folder, tmp_path / "copy")
    with pytest.raises(JournalError, match="is a copy of"):
        use(Home(tmp_path / "copy"))


def test_machine_that_forgot_takes_the_journal_that_is_there(home: Home, tmp_path: Path) -> None:
    use(home)
    before = (home.folder / "journal.id").read_text()
    shutil.rmtree(tmp_path / "state")
    use(home)
    assert (home.folder / "journal.id").read_text() == before
