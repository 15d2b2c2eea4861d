"""What an agent does when its machine or its market lets it down, each shown without a market."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
import worker_agent
from tests.agent.books import FETCHED, ME, PEER, TRAINED, situation, task, terms
from tests.engine.manifests import classifier
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import TaskState
from worker_agent.actions import Fetch, Stop, Train
from worker_agent.deciding import decide
from worker_agent.fetching import manifest_of
from worker_agent.joining import publish_block
from worker_agent.progress import JOBS, MANIFEST, Failure, Progress, Shelf
from worker_agent.runner.__main__ import main
from worker_agent.runner.job import RunnerJob
from worker_agent.settings import Home

_HOUR_S = 3600

_CONFIG = f"""
[chain]
endpoints = ["http://127.0.0.1:1"]
chain_id = 1
market = "{PEER}"
start_block = 0
"""


def test_work_that_failed_is_tried_again_within_a_minute_also_if_the_clock_is_put_back(
    tmp_path: Path,
) -> None:
    shelf = Shelf(tmp_path)
    for _ in range(12):
        shelf.note("fetch", "nobody has it")
    failure = shelf.progress().failures["fetch"]
    noted_at = failure.again_at - 60

    assert failure.count == 12
    assert not failure.is_due(noted_at + 59)
    assert failure.is_due(noted_at + 60)
    assert failure.is_due(noted_at - 5 * _HOUR_S)
    shelf.note("fetch", "")
    assert shelf.progress().failures == {}


def test_wall_clock_is_asked_only_for_what_is_shown_and_for_trying_again() -> None:
    """All else goes by the chain's time, and by what has passed."""
    folder = Path(worker_agent.__file__).parent
    allowed = {
        "checkup.py",
        # What a dapp is told bears the time; whether it takes that matters to nobody's money.
        "feeding.py",
        "looking.py",
        "progress.py",
        "runner/live.py",
        "speed.py",
        "working.py",
    }
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "time.time",
                "time.time_ns",
            )
            if is_call:
                found.add(str(path.relative_to(folder)))
    assert found <= allowed


def test_task_that_could_not_be_fetched_is_fetched_again() -> None:
    offer = task(TaskState.OPEN, workers=())
    failed = Progress(failures={"fetch": Failure("nobody has it", 3, 100.0)})

    assert Fetch(1) not in decide(situation(offer, failed, clock=99.0))
    assert Fetch(1) in decide(situation(offer, failed, clock=100.0))


def test_who_holds_no_slot_any_more_stops_training() -> None:
    """Evicted, or its joining fell out of the chain."""
    evicted = replace(task(TaskState.RUNNING, workers=(ME, PEER)), joined=0b10)
    replaced = task(TaskState.RUNNING, workers=(PEER,))
    training = Progress(fetched=FETCHED, card=b"k" * 32)
    for found in (evicted, replaced):
        decided = decide(situation(found, training))
        assert [one for one in decided if isinstance(one, Stop)] == [
            Stop(1, "we hold no slot of it", works=("train",))
        ]
        assert not any(isinstance(one, Train) for one in decided)


@pytest.mark.parametrize("answered", [0, 1])
def test_who_has_ended_is_there_for_the_others_while_they_compute(answered: int) -> None:
    both = terms(slots=2, quorum=1)
    found = replace(task(TaskState.RUNNING, workers=(ME, PEER), terms=both), answered=answered)

    assert Train(1, 0) in decide(situation(found, TRAINED))


def test_manifest_that_was_cut_short_is_fetched_again(tmp_path: Path) -> None:
    whole = Manifest.of(classifier()).canonical
    content = Content(EmbeddedStore(tmp_path / "store"))
    digest = publish_block(content, whole).hex()
    shelf = Shelf(tmp_path / "task")
    try:
        manifest_of(digest, shelf, content)
        shelf.path(MANIFEST).write_bytes(whole[:100])
        assert manifest_of(digest, shelf, content).digest.hex() == digest
    finally:
        content.close()


def test_runner_for_one_task_refuses_the_manifest_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    home.config.write_text(_CONFIG)
    shelf = Shelf(home.task(1))
    job = RunnerJob(
        home=tmp_path,
        task=1,
        manifest="ab" * 32,
        slot=0,
        me=ME,
        chain_id=1,
        market=PEER,
        holders={0: ME},
        cards={},
    )
    shelf.write(job.model_dump(mode="json"), JOBS, "train.json")
    shelf.path(MANIFEST).write_bytes(Manifest.of(classifier()).canonical)
    monkeypatch.setattr(sys, "argv", ["runner", str(shelf.path(JOBS, "train.json"))])

    with pytest.raises(SystemExit):
        main()

    said = json.loads(capsys.readouterr().out)
    assert said["is_permanent"]
    assert "of another task; nothing is trained" in said["reason"]


def test_log_on_a_full_disk_costs_a_line_and_nothing_else(tmp_path: Path) -> None:
    program = (
        "import resource, sys, structlog; from pathlib import Path\n"
        "from worker_agent.logs import set_up_logs\n"
        "set_up_logs(Path(sys.argv[1]), shown=True)\n"
        "log = structlog.get_logger()\n"
        "def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1))\n"
        "log.info('one'); limit(1); log.info('two'); limit(-1); log.info('three')\n"
    )
    with (tmp_path / "shown").open("wb") as shown:
        done = subprocess.run(
            [sys.executable, "-c", program, tmp_path / "agent.log"], stderr=shown, timeout=60
        )

    assert done.returncode == 0
    for name in ("agent.log", "shown"):
        lines = (tmp_path / name).read_text().splitlines()
        assert [json.loads(line)["event"] for line in lines] == ["one", "three"]


_FULL = """
import sys
from pathlib import Path
from worker_agent.children import Done
from worker_agent.endings import is_permanent, reason_of
folder = Path(sys.argv[1])
with open(folder / "large", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
print(reason_of(Done(1, "train", 1, "T"), folder))
print(is_permanent(Done(1, "train", 1, '{"is_permanent": true}'), folder))
"""


def test_full_disk_is_named_as_what_made_work_fail(tmp_path: Path) -> None:
    """A small disk of our own, in a name space that ends with the process."""
    alone = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    mounted = 'mount -t tmpfs -o size=1M none "$1" && exec "$2" -W ignore -c "$3" "$1"'
    command = [*alone, "sh", "-c", mounted, "sh", str(tmp_path), sys.executable, _FULL]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine gives nobody name spaces")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stdout == (
        f"the disk of {tmp_path} is full: make room, and it goes on by itself\nFalse\n"
    ), done.stderr
    assert list(tmp_path.iterdir()) == []
