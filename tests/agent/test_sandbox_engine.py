"""The engine's children in the sandbox: the same bits, and no more reach than their jobs."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.agent.sandboxes import groups_of, probe
from tests.engine.nets import manifest_of, write_data
from trainyard.engine.auditing import inputs_in, recompute
from trainyard.engine.classes import _key
from trainyard.engine.confining import class_cache
from trainyard.engine.errors import RunError
from trainyard.engine.events import Ended, read_event
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.runtime import BEST
from trainyard.engine.starting import confined, reason_of, started
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return Sandbox(Limits(memory_bytes=3 << 30, disk_bytes=1 << 30))


def job_in(folder: Path, manifest: Manifest, data: Path) -> Job:
    (folder / "run").mkdir(parents=True)
    (folder / "manifest.json").write_bytes(manifest.canonical)
    return Job(manifest=folder / "manifest.json", folder=folder / "run", train=data)


def test_run_and_audit_come_to_the_same_bits_as_outside(sandbox: Sandbox, tmp_path: Path) -> None:
    files = write_data(tmp_path / "data")
    manifest = manifest_of("batch_norm")
    outside = run_local(manifest, files, tmp_path / "outside")
    job = job_in(tmp_path / "inside", manifest, files.train)

    with started(job, sandbox) as worker:
        assert worker.stdout is not None
        events = [read_event(line) for line in worker.stdout]
        assert worker.wait() == 0, (job.folder / "worker.log").read_text()

    inside = Journal.read(job.folder)
    assert inside.trace.states == outside.trace.states
    assert isinstance(events[-1], Ended)
    assert events[-1].root == outside.trace.root.hex()
    assert inside.state(4) == outside.state(4)

    asked = {number: inputs_in(inside, manifest, number) for number in (0, 2)}
    (tmp_path / "kept").mkdir()
    there = recompute(manifest, files, asked, tmp_path / "kept", sandbox)
    here = recompute(manifest, files, asked)
    assert there.start == here.start == outside.entries[0].state
    assert [one.state for one in there.answers] == [one.state for one in here.answers]
    assert [one.state for one in here.answers] == [outside.entries[n + 1].state for n in asked]
    # The state that the manifest begins with, and those that the two segments came to.
    kept = sorted(path.stem for path in (tmp_path / "kept").iterdir())
    assert kept == ["000000", "000001", "000003"]
    assert groups_of(sandbox) == []


def test_command_before_the_worker_has_its_folders(sandbox: Sandbox, tmp_path: Path) -> None:
    sockets, config = tmp_path / "sockets", tmp_path / "config"
    sockets.mkdir()
    config.write_text("where peers are")
    job = job_in(tmp_path / "task", manifest_of("mlp"), write_data(tmp_path / "data").train)
    program = (
        "import json, pathlib, socket, sys\n"
        "socket.socket(socket.AF_UNIX).bind(sys.argv[1] + '/0')\n"
        "said = pathlib.Path(sys.argv[2]).read_text()\n"
        "job = json.loads(pathlib.Path(sys.argv[-1]).read_text())\n"
        "data = sorted(path.name for path in pathlib.Path(job['train']).iterdir())\n"
        "print(json.dumps([said, data, sys.argv[3:]]))\n"
    )
    before = [sys.executable, "-c", program, str(sockets), str(config), "--"]

    with confined(job, sandbox, before=before, readable=[config], writable=[sockets]) as worker:
        assert worker.stdout is not None
        said, data, argv = json.loads(worker.stdout.read())

    assert (said, data) == ("where peers are", ["image.npy", "label.npy"])
    assert argv[0] == "--"
    assert argv[1:] == [
        sys.executable,
        "-m",
        "trainyard.engine.worker",
        str(job.folder / "job.json"),
    ]
    assert (sockets / "0").is_socket()


def test_relative_paths_of_a_job_mean_the_same_inside(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_in(tmp_path / "task", manifest_of("mlp"), tmp_path)
    monkeypatch.chdir(tmp_path)
    job = Job(manifest=Path("task/manifest.json"), folder=Path("task/run"), train=Path("task"))
    program = (
        "import json, os, sys\n"
        "job = json.load(open(sys.argv[-1]))\n"
        "print(*(os.path.exists(job[name]) for name in ('manifest', 'folder', 'train')))\n"
    )

    with confined(job, sandbox, before=[sys.executable, "-c", program]) as worker:
        assert worker.stdout is not None
        assert worker.stdout.read() == b"True True True\n"


@pytest.mark.parametrize("name", ["worker.log", "job.json"])
def test_link_that_a_worker_left_is_not_followed(
    sandbox: Sandbox, tmp_path: Path, name: str
) -> None:
    """Else the next start would write to a file of ours, and its last line be told to strangers."""
    secret = tmp_path / "keystore.json"
    secret.write_text("a key")
    job = job_in(tmp_path / "task", manifest_of("mlp"), tmp_path)
    (job.folder / name).symlink_to(secret)

    try:
        before = [sys.executable, "-c", "import sys; sys.stderr.write('by a stranger')"]
        with confined(job, sandbox, before=before) as worker:
            worker.wait()
        told = reason_of(job, 1)
    except RunError as error:
        told = str(error)

    assert secret.read_text() == "a key"
    assert "a key" not in told


def test_pipe_in_place_of_a_log_keeps_nobody_waiting(sandbox: Sandbox, tmp_path: Path) -> None:
    job = job_in(tmp_path / "task", manifest_of("mlp"), tmp_path)
    os.mkfifo(job.folder / "worker.log")

    with pytest.raises(RunError, match="no plain file"), started(job, sandbox):
        pass
    with pytest.raises(RunError, match="no plain file"):
        reason_of(job, 1)


def test_death_in_a_sandbox_is_told_as_outside(tmp_path: Path) -> None:
    (tmp_path / "worker.log").write_bytes(b"")
    job = Job(manifest=tmp_path, folder=tmp_path, train=tmp_path)

    assert reason_of(job, 137) == "worker 0 was killed by SIGKILL"


def test_audit_that_takes_too_long_says_so(tmp_path: Path) -> None:
    files = write_data(tmp_path / "data")
    hasty = Sandbox(Limits(wall_s=0.1))

    with pytest.raises(RunError, match=r"the task ran for more than 0\.1 s"):
        recompute(manifest_of("mlp"), files, {}, confinement=hasty)

    assert groups_of(hasty) == []


def test_class_of_this_machine_is_looked_up_by_the_same_name(sandbox: Sandbox) -> None:
    """What it is found by must be seen inside as outside: builds, processor, caches."""
    folder, environment = class_cache()
    program = (
        "from trainyard.engine.classes import _key; from trainyard.engine.runtime import BEST\n"
        "print(_key(BEST))"
    )

    found = probe(sandbox, program)

    assert found.output.strip() == _key(BEST), found.log
    assert folder == Path(environment["XDG_CACHE_HOME"]) / "trainyard" / "environment"
