"""An auditor that waits in its sandbox: the same bits, no more reach, one use, and nothing left."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.agent.sandboxes import groups_of, processes_with
from tests.engine.nets import manifest_of, write_data
from trainyard.engine.auditing import inputs_in
from trainyard.engine.auditor import Inputs
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.standby import standing_by
from trainyard.protocol.manifest import Manifest
from worker_agent.children import Children
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox

_PATIENCE_S = 120.0
_TELLING = "import sys; print(sys.stdin.readline().strip() or 'nobody')"


@pytest.fixture(scope="module", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of this runner: tests of this file run side by side, and must not count each other's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("standing-by")))
        yield


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return Sandbox(Limits(memory_bytes=3 << 30, disk_bytes=1 << 30))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Files, Journal]:
    folder = tmp_path_factory.mktemp("run")
    files, manifest = write_data(folder / "data"), manifest_of("mlp")
    return manifest, files, run_local(manifest, files, folder / "run")


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def auditors() -> list[int]:
    return processes_with(f"{tempfile.gettempdir()}/trainyard-standby-")


def test_it_comes_to_the_same_bits_and_is_gone(
    sandbox: Sandbox, run: tuple[Manifest, Files, Journal]
) -> None:
    manifest, files, journal = run
    wanted = {number: inputs_in(journal, manifest, number) for number in (0, 2)}

    with standing_by(manifest, files, sandbox, [journal.folder]) as auditor:
        auditor.look()
        found = auditor.recompute(wanted)

    assert found.start == journal.entries[0].state
    states = {answer.segment: answer.state for answer in found.answers}
    assert states == {number: journal.entries[number + 1].state for number in wanted}
    assert auditors() == []
    assert groups_of(sandbox) == []


def test_what_comes_later_is_read_and_a_link_leads_nowhere(
    sandbox: Sandbox, run: tuple[Manifest, Files, Journal], tmp_path: Path
) -> None:
    """What a worker put into the folder must not be a way to files of ours."""
    manifest, files, journal = run
    [before] = inputs_in(journal, manifest, 1).states
    (tmp_path / "evidence").mkdir()
    secret = tmp_path / "secret"
    secret.write_bytes(before.read_bytes())

    with standing_by(manifest, files, sandbox, [tmp_path / "evidence"]) as auditor:
        (tmp_path / "evidence" / "state").write_bytes(before.read_bytes())
        found = auditor.recompute({1: Inputs(states=(tmp_path / "evidence" / "state",))})
        assert found.answers[0].state == journal.entries[2].state

    with standing_by(manifest, files, sandbox, [tmp_path / "evidence"]) as auditor:
        (tmp_path / "evidence" / "link").symlink_to(secret)
        [answer] = auditor.recompute({1: Inputs(states=(tmp_path / "evidence" / "link",))}).answers
        assert answer.state is None


def test_it_answers_once(sandbox: Sandbox, run: tuple[Manifest, Files, Journal]) -> None:
    manifest, files, journal = run
    wanted = {1: inputs_in(journal, manifest, 1)}

    with standing_by(manifest, files, sandbox, [journal.folder]) as auditor:
        auditor.recompute(wanted)
        with pytest.raises((RunError, ValueError)):
            auditor.recompute(wanted)


def test_one_that_is_not_needed_leaves_nothing(
    sandbox: Sandbox, run: tuple[Manifest, Files, Journal]
) -> None:
    manifest, files, journal = run

    with standing_by(manifest, files, sandbox, [journal.folder]):
        wait_for(lambda: bool(auditors()))

    assert auditors() == []
    assert groups_of(sandbox) == []


def test_one_that_was_killed_is_an_error_and_no_answer(
    sandbox: Sandbox, run: tuple[Manifest, Files, Journal]
) -> None:
    manifest, files, journal = run

    with standing_by(manifest, files, sandbox, [journal.folder]) as auditor:
        wait_for(lambda: bool(auditors()))
        for pid in auditors():
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RunError, match="SIGKILL"):
            auditor.recompute({1: inputs_in(journal, manifest, 1)})


def test_limits_hold_while_it_waits(run: tuple[Manifest, Files, Journal]) -> None:
    manifest, files, journal = run
    hasty = Sandbox(Limits(wall_s=0.1))

    with standing_by(manifest, files, hasty, [journal.folder]) as auditor:
        time.sleep(0.2)
        with pytest.raises(RunError, match=r"the task ran for more than 0\.1 s"):
            auditor.look()
        wait_for(lambda: auditors() == [])


# The process that keeps it


@pytest.fixture
def children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Children:
    (tmp_path / "telling.py").write_text(_TELLING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Children(tmp_path / "scratch")


def test_work_is_handed_over_once(children: Children, tmp_path: Path) -> None:
    children.start(1, "standby", "telling", [], tmp_path / "log", is_told=True)
    try:
        assert not children.hand_over(2, "standby", "seal", "another task")
        assert children.hand_over(1, "standby", "seal", "a seal")
        assert children.of(1) == ["seal"]
        assert children.doing("standby") == []
        assert not children.hand_over(1, "standby", "seal", "another")
        while not (done := children.ended()):
            children.wait(60)
    finally:
        children.stop_all()

    assert [(one.work, one.status, one.said) for one in done] == [("seal", 0, "a seal")]


def test_one_that_is_dismissed_ends_by_itself(children: Children, tmp_path: Path) -> None:
    children.start(1, "standby", "telling", [], tmp_path / "log", is_told=True)
    try:
        children.dismiss(1, "standby")
        children.dismiss(1, "standby")
        assert not children.hand_over(1, "standby", "seal", "too late")
        while not (done := children.ended()):
            children.wait(60)
    finally:
        children.stop_all()

    assert [(one.work, one.status, one.said) for one in done] == [("standby", 0, "nobody")]


def test_nothing_is_handed_to_one_that_has_ended(children: Children, tmp_path: Path) -> None:
    children.start(1, "standby", "telling", [], tmp_path / "log", is_told=True)
    try:
        process = psutil.Process().children()[-1]
        process.kill()
        wait_for(lambda: process.status() == psutil.STATUS_ZOMBIE)
        assert not children.hand_over(1, "standby", "seal", "a seal")
        assert children.of(1) == ["standby"]
    finally:
        children.stop_all()
