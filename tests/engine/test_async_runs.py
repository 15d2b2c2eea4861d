"""Whole runs in mode async, in processes of their own: losses, resuming, scores, refusals."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.engine.nets import manifest_of, source, write_data
from tests.engine.test_async import iterations
from tests.engine.test_runs import supervisor_here, workers_here
from trainyard.cli.app import app
from trainyard.engine.auditing import audit
from trainyard.engine.errors import RunError, WrongAuditError
from trainyard.engine.events import Event, Finished, Joined, Restarted, Started
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.results import Result as TaskResult

STEPS, SEGMENT, TESTED = 120, 30, 40


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("data")
    tested = write_data(folder / "test", TESTED).train
    return replace(write_data(folder / "train"), test=tested)


def document_for(**training: Any) -> dict[str, Any]:
    length: dict[str, Any] = {"until": {"steps": STEPS}, "steps_per_segment": SEGMENT}
    document: dict[str, Any] = json.loads(manifest_of("batch_norm", **length).canonical)
    document["training"] |= training
    document["data"]["test"] = source(TESTED)
    return document


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


class Yard:
    """A run in mode async by the command, published in a store of its own."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.folder = folder
        self.store = ("--store", folder / "store", "--json")
        document = document_for()
        for name, path in (("train", files.train), ("test", files.test)):
            assert path is not None
            cid = json.loads(command("content", "add", path, *self.store).stdout)["cid"]
            document["data"][name]["path"] = f"ipfs://{cid}"
        (folder / "manifest.json").write_text(json.dumps(document))
        mode = ("--mode", "async", "--workers", "2", "--publish", "--folder", folder / "run")
        ran = command("engine", "run", folder / "manifest.json", *mode, *self.store)
        assert ran.exit_code == 0, ran.output
        self.ran: dict[str, Any] = json.loads(ran.stdout)

    def audit(self, result: str | Path, *options: str) -> Result:
        return command("audit", result, *options, "--cache", self.folder / "cache", *self.store)


@pytest.fixture(scope="module")
def yard(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    return Yard(tmp_path_factory.mktemp("yard"), files)


def test_two_workers_learn_and_say_what_the_run_is_worth(yard: Yard) -> None:
    journal = Journal.read(yard.folder / "run")

    assert [entry.step for entry in journal.entries] == [0, 30, 60, 90, 120]
    assert iterations(journal.state(4)) == STEPS
    assert yard.ran["replayable"] is False
    assert yard.ran["score"]["state"] == journal.entries[-1].state
    assert yard.ran["score"]["records"] == "test"
    assert yard.ran["score"]["figures"] == yard.ran["tested"]
    assert yard.ran["tested"]["examples"] == TESTED
    assert yard.ran["tested"]["metrics"]["accuracy"] > 0.6
    parameters = Manifest.parse(journal.manifest).model.parameters
    # The weights there, and back the gradients, moving statistics, loss, weight and one metric.
    assert yard.ran["sent_bytes"] == STEPS * 4 * (parameters + parameters + 3)
    assert (yard.ran["energy_j_estimated"], yard.ran["energy_estimated_by"]) == (None, [])
    assert (journal.folder / "model.keras").exists()
    assert list((journal.folder / "tensorboard").iterdir())


def test_strangers_find_the_score_of_a_published_run(yard: Yard) -> None:
    found = yard.audit(yard.ran["cid"])

    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["agrees"] is True
    assert told["replayable"] is False
    assert told["score"]["found"] == told["score"]["claimed"] == yard.ran["score"]


def test_the_result_of_a_task_leads_to_its_score(yard: Yard) -> None:
    named = {name: yard.ran[name] for name in ("manifest", "root")}
    result = yard.folder / "result.json"
    result.write_bytes(TaskResult(**named, evidence="", run=yard.ran["cid"]).canonical)
    cid = json.loads(command("content", "add", result, *yard.store).stdout)["cid"]

    found = yard.audit(cid)

    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["score"]["found"] == yard.ran["score"]


def test_better_score_than_that_of_the_state_is_found(yard: Yard, tmp_path: Path) -> None:
    shutil.copytree(yard.folder / "run", tmp_path / "run")
    score = json.loads((tmp_path / "run" / "score.json").read_text())
    score["figures"]["loss"] *= 1 - 2**-50
    (tmp_path / "run" / "score.json").write_text(json.dumps(score))

    found = yard.audit(tmp_path / "run")

    assert found.exit_code == 4, found.output
    told = json.loads(found.stdout)
    assert told["score"]["claimed"] == score != told["score"]["found"] == yard.ran["score"]


@pytest.mark.parametrize("result", ["cid", "folder"])
def test_segments_are_not_audited(yard: Yard, result: str) -> None:
    found = yard.audit(yard.ran[result], "--segment", "1")

    assert found.exit_code == 2, found.output
    assert "not replayable" in json.loads(found.stdout)["error"]


def test_library_does_not_pretend_to_recompute_segments(yard: Yard, files: Files) -> None:
    with pytest.raises(WrongAuditError, match="computes its score"):
        audit(yard.folder / "run", files, [0])


def test_run_that_can_be_replayed_has_no_score(yard: Yard, tmp_path: Path) -> None:
    Journal.open(tmp_path, manifest_of().canonical)

    found = yard.audit(tmp_path)

    assert found.exit_code == 2, found.output
    assert "--segment" in json.loads(found.stdout)["error"]


def test_run_outlives_a_worker_and_its_leader(files: Files, tmp_path: Path) -> None:
    """The others go on without the worker; with the leader all start anew."""
    manifest = Manifest.of(document_for(mode="async", workers=2))
    events: list[Event] = []
    leader = 0

    def on_event(event: Event) -> None:
        nonlocal leader
        events.append(event)
        match event:
            case Finished() if event.entry.number == 1 and not leader:
                _, worker, leader = workers_here()
                os.kill(worker, signal.SIGKILL)
            case Finished() if event.entry.number == 2:
                # Held, so that the run does not end before the worker is back.
                os.kill(leader, signal.SIGSTOP)
            case Restarted(alone=True):
                os.kill(leader, signal.SIGKILL)

    journal = run_local(manifest, files, tmp_path, on_event)

    worker_back, all_back = [event for event in events if isinstance(event, Restarted)]
    assert (worker_back.slot, worker_back.reason) == (1, "worker 1 was killed by SIGKILL")
    assert all_back.reason == "the leader was killed by SIGKILL"
    assert not all_back.alone
    assert all_back.kept >= 3
    resumed = [event.resumed for event in events if isinstance(event, Started)]
    assert resumed == [0, all_back.kept]
    joined = [event.slot for event in events if isinstance(event, Joined)]
    assert sorted(joined) == [0, 0, 1, 1, 1]
    assert iterations(journal.state(4)) == STEPS


def test_run_that_stands_still_is_started_anew(files: Files, tmp_path: Path) -> None:
    """A worker is stopped, and the leader waits for what it was sent."""
    manifest = Manifest.of(document_for(mode="async", workers=2))
    events: list[Event] = []
    stopped = 0

    def on_event(event: Event) -> None:
        nonlocal stopped
        events.append(event)
        if not stopped and isinstance(event, Finished) and event.entry.number == 1:
            _, stopped, _ = workers_here()
            os.kill(stopped, signal.SIGSTOP)

    journal = run_local(manifest, files, tmp_path, on_event, stall_s=3)

    [restart] = [event for event in events if isinstance(event, Restarted)]
    assert restart.reason == "the leader took no step for 3 s"
    assert not restart.alone
    assert restart.kept >= 2
    assert iterations(journal.state(4)) == STEPS


def test_run_goes_on_after_all_were_killed(files: Files, tmp_path: Path) -> None:
    """Here with one worker. What was kept stays as it is."""
    manifest = Manifest.of(document_for(mode="async", workers=1))
    kept: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Finished):
            kept.append(event.entry.state)
            if event.entry.number == 2:
                # Its processes end with it.
                os.kill(supervisor_here(), signal.SIGKILL)

    with pytest.raises(RunError, match="was killed by SIGKILL"):
        run_local(manifest, files, tmp_path, on_event)
    journal = run_local(manifest, files, tmp_path)

    assert [entry.state for entry in journal.entries][:3] == kept[:3]
    assert iterations(journal.state(4)) == STEPS
