"""Files of a run, where a stranger in a sandbox writes too: nothing leads to a file of ours."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trainyard.engine import journal as journal_module
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Entry, Journal, held, write_whole
from trainyard.engine.plain_files import written
from trainyard.engine.state import State

STATE = State({"a": np.arange(4)})
ENTRY = Entry(number=0, state=STATE.hash.hex(), step=0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    Journal.open(tmp_path / "run", b"{}").append(ENTRY, STATE)
    return tmp_path / "run"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "keystore.json"
    path.write_bytes(b"{}")
    return path


# What is killed while it writes a file: it has no time to remove what there is of it.
KILLED = """
import os, signal, sys
from pathlib import Path
from trainyard.engine.plain_files import written
with written(Path(sys.argv[1])) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_writing(path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert not path.exists()


def test_what_a_killed_predecessor_was_writing_is_removed(run: Path) -> None:
    others = [run / "states" / ".hidden", run / "states" / "7.tmp", run / "states" / ".a.7.tmp"]
    others[0].touch()
    others[1].touch()
    # Of a stranger, and so nothing of ours.
    others[2].mkdir()
    before = sorted(run.rglob("*"))
    for path in (run / "states" / "000001.safetensors", run / "score.json"):
        killed_writing(path)
    assert len(list(run.rglob("*"))) == len(before) + 2

    Journal.open(run, b"{}")

    assert sorted(run.rglob("*")) == before


def test_what_a_killed_round_was_writing_is_removed(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    exchange.prepare()
    name = exchange.put(STATE)
    killed_writing(exchange.path_of("f" * 64))

    exchange.prepare()

    assert list(exchange.path_of(name).parent.iterdir()) == [exchange.path_of(name)]


def open_journal(run: Path) -> None:
    Journal.open(run, b"{}")


def append(run: Path) -> None:
    Journal(run).append(ENTRY, STATE)


def hold(run: Path) -> None:
    with held(run):
        pass


@pytest.mark.parametrize("is_pipe", [False, True], ids=["link", "pipe"])
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("manifest.json", open_journal),
        ("journal.jsonl", open_journal),
        ("journal.jsonl", append),
        ("lock", hold),
    ],
)
def test_what_is_no_plain_file_is_not_opened(
    run: Path, secret: Path, name: str, use: Callable[[Path], None], is_pipe: bool
) -> None:
    (run / name).unlink(missing_ok=True)
    if is_pipe:
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to(secret)

    with pytest.raises(RunError, match=f"{name} is no plain file: remove it"):
        use(run)
    assert secret.read_bytes() == b"{}"


def test_state_behind_a_link_is_none(run: Path, tmp_path: Path) -> None:
    path = Journal.read(run).path_of(0)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StateError, match="no plain file"):
        State.load(path)


def test_folder_of_states_that_is_a_link_is_not_used(run: Path, tmp_path: Path) -> None:
    journal = Journal.read(run)
    (run / "states").rename(tmp_path / "elsewhere")
    (run / "states").symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())

    again = ENTRY.model_copy(update={"number": 1})
    for use in (
        lambda: journal.state(0),
        lambda: STATE.save(journal.path_of(5)),
        lambda: journal.append(again, STATE),
        lambda: open_journal(run),
    ):
        with pytest.raises((RunError, StateError), match="no plain folder: remove it"):
            use()
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


def test_link_in_place_of_a_file_is_replaced_and_not_followed(run: Path, secret: Path) -> None:
    for name in ("job.json", "states/000001.safetensors"):
        (run / name).symlink_to(secret)

    write_whole(run / "job.json", b"a job", mode=0o600)
    STATE.save(run / "states/000001.safetensors")

    assert (run / "job.json").read_bytes() == b"a job"
    assert (run / "job.json").lstat().st_mode & 0o777 == 0o600
    assert State.load(run / "states/000001.safetensors") == STATE
    assert secret.read_bytes() == b"{}"


def test_file_that_is_not_finished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"before")

    with pytest.raises(TypeError), written(tmp_path / "it") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]

    assert [path.name for path in tmp_path.iterdir()] == ["it"]
    assert (tmp_path / "it").read_bytes() == b"before"


def test_journal_larger_than_any_is_not_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_MOST_BYTES", 100)
    os.truncate(run / "journal.jsonl", 101)

    with pytest.raises(RunError, match=r"journal\.jsonl has more than 100 bytes"):
        Journal.read(run)


def test_run_in_a_folder_that_its_owner_linked_goes_on(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(run)

    assert Journal.open(tmp_path / "mine", b"{}").state(0) == STATE
