"""Whole runs in rounds, in processes of their own: losses, stragglers, audits."""

import json
import os
import re
import shutil
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from typer.testing import CliRunner

from tests.engine.nets import manifest_of, write_data
from tests.engine.test_runs import supervisor_here, workers_here
from trainyard.cli.app import app
from trainyard.engine import launching
from trainyard.engine.auditing import audit, inputs_in
from trainyard.engine.errors import RunError
from trainyard.engine.events import Ended, Event, Finished, LeftOut, Restarted, Stepped
from trainyard.engine.evidence import TraceList
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.leaves import Absence, absence_of
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.material import Files
from trainyard.engine.signing import address_of
from trainyard.engine.state import State
from trainyard.engine.worker import Job, open_rounds
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.trace import Trace

ROUNDS = 5
# Local steps of a round that takes so long that a signal comes in the middle of one.
LONG = 100


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write_data(tmp_path_factory.mktemp("data"))


def rounds(local_steps: int = 20, workers: int = 2, **changes: Any) -> Manifest:
    return manifest_of(
        "mlp",
        mode="rounds",
        workers=workers,
        until={"steps": ROUNDS * local_steps},
        steps_per_segment=local_steps,
        rounds={"local_steps": local_steps, "compression": "float16", **changes},
        validation={"split": 0.25},
    )


@pytest.fixture(scope="module")
def undisturbed(
    files: Files, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Journal, list[Event]]:
    events: list[Event] = []
    journal = run_local(rounds(), files, tmp_path_factory.mktemp("undisturbed"), events.append)
    return journal, events


def absences(journal: Journal) -> dict[int, Absence]:
    """By number of the state."""
    found = {entry.number: absence_of(journal.state(entry.number)) for entry in journal.entries}
    return {number: why for number, why in found.items() if why is not None}


def assert_found_again(journal: Journal, files: Files) -> None:
    """Every segment, by a stranger in this process: another one would take longer to start."""
    manifest = Manifest.parse(journal.manifest)
    job = Job(manifest=journal.folder / "manifest.json", folder=journal.folder, train=files.train)
    stranger = open_rounds(job, manifest)
    for segment in range(manifest.plan.segments):
        given = inputs_in(journal, manifest, segment)
        states = tuple(State.load(path) for path in given.states)
        deltas = {one.hash: one for one in map(State.load, given.deltas)}
        found = stranger.recompute(segment, states, deltas, given.absence)
        assert found.hash.hex() == journal.entries[segment + 1].state, f"segment {segment}"


class Signalling:
    """Keeps what it is told, and once sends worker 1 a signal in the middle of a round."""

    def __init__(self, number: signal.Signals) -> None:
        self.events: list[Event] = []
        self.pid = 0
        self._signal = number

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if not self.pid and isinstance(event, Stepped) and event.slot == 1:
            self.pid = workers_here()[1]
            os.kill(self.pid, self._signal)

    @property
    def left_out(self) -> list[LeftOut]:
        return [event for event in self.events if isinstance(event, LeftOut)]


def test_run_is_told_kept_and_found_again(
    files: Files, undisturbed: tuple[Journal, list[Event]]
) -> None:
    journal, events = undisturbed

    assert [entry.number for entry in journal.entries] == list(range(3 * ROUNDS + 1))
    assert [entry.step for entry in journal.entries[::3]] == [0, 20, 40, 60, 80, 100]
    assert absences(journal) == {}
    told = [event.entry for event in events if isinstance(event, Finished)]
    assert told == journal.entries
    [end] = [event for event in events if isinstance(event, Ended)]
    assert end.root == journal.trace.root.hex()
    assert (journal.folder / "model.keras").exists()
    # Each worker sends its delta and its leaf to one other.
    sent = [entry.sent_bytes for entry in journal.entries]
    assert sent[0::3] == [0] * (ROUNDS + 1)
    first_merge = inputs_in(journal, Manifest.parse(journal.manifest), 2)
    assert sent[1] == journal.state(1).size + first_merge.deltas[0].stat().st_size
    assert len(set(sent[1::3] + sent[2::3])) == 1
    assert sent[1] > 2 * (144 * 24 + 24 * 10)
    assert [entry.energy is not None for entry in journal.entries[1:]] == [
        True,
        True,
        False,
    ] * ROUNDS
    answers = audit(journal.folder, files, range(3 * ROUNDS)).answers
    assert [one.state for one in answers] == [entry.state for entry in journal.entries[1:]]


def test_figures_of_the_run_and_of_each_worker_are_for_tensorboard(
    undisturbed: tuple[Journal, list[Event]],
) -> None:
    journal, _ = undisturbed
    steps = [20, 40, 60, 80, 100]
    merges = [journal.entries[3 * number] for number in range(1, ROUNDS + 1)]
    val_loss = {one.validated[-1].step + 1: one.validated[-1].loss for one in merges}
    assert list(val_loss) == steps

    for slot in range(2):
        shown = scalars_in(journal.folder / "peers" / str(slot) / "tensorboard")
        parts = [journal.entries[3 * number + 1 + slot].trained for number in range(ROUNDS)]
        losses = [one.loss for one in parts if one is not None]
        assert shown["loss"] == pytest.approx(dict(zip(steps, losses, strict=True)))
        assert shown["val_loss"] == pytest.approx(val_loss)
        assert list(shown["val_accuracy"]) == list(shown["examples_per_s"]) == steps
    # The run as one, where runs of all modes have theirs.
    shown = scalars_in(journal.folder / "tensorboard")
    losses = [one.trained.loss for one in merges if one.trained is not None]
    assert shown["loss"] == pytest.approx(dict(zip(steps, losses, strict=True)))
    assert shown["val_loss"] == pytest.approx(val_loss)
    slowest = max(journal.entries[number].train_s for number in (1, 2))
    assert shown["examples_per_s"][20] == pytest.approx(20 * 24 / slowest)
    joules = [one.energy.joules for one in journal.entries[1:3] if one.energy]
    assert shown["energy_j_estimated"][20] == pytest.approx(sum(joules))


def scalars_in(folder: Path) -> dict[str, dict[int, Any]]:
    """By name and step."""
    found: dict[str, dict[int, Any]] = {}
    for path in folder.iterdir():
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def test_lost_worker_is_left_out_and_recorded(files: Files, tmp_path: Path) -> None:
    watch = Signalling(signal.SIGKILL)

    journal = run_local(rounds(LONG), files, tmp_path, watch)

    found = absences(journal)
    assert set(found.values()) == {Absence.AWAY}
    assert all(number % 3 == 2 for number in found)
    assert [(one.slot, 3 * one.round + 2) for one in watch.left_out] == [
        (1, number) for number in found
    ]
    assert_found_again(journal, files)


def test_bad_workers_are_left_out_and_named(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One signs with another key than it was announced with, one has no data."""
    jobs_of = launching._jobs

    def with_bad_workers(*given: Any) -> tuple[Job, ...]:
        first, second, third = jobs_of(*given)
        signers = (*first.signers[:1], address_of(b"\x07" * 32), *first.signers[2:])
        told = {"signers": signers}
        return (
            first.model_copy(update=told),
            second.model_copy(update=told),
            third.model_copy(update={**told, "train": tmp_path / "nowhere"}),
        )

    monkeypatch.setattr(launching, "_jobs", with_bad_workers)
    events: list[Event] = []

    journal = run_local(rounds(workers=3, quorum=1), files, tmp_path / "run", events.append)

    left_out = {(one.slot, one.reason) for one in events if isinstance(one, LeftOut)}
    assert {slot for slot, _ in left_out} == {1, 2}
    assert any("worker 1 in round 0 is signed by" in reason for _, reason in left_out)
    assert any(f"{tmp_path / 'nowhere'}" in reason for _, reason in left_out)
    assert {number % 4 for number in absences(journal)} == {2, 3}
    assert_found_again(journal, files)


def test_worker_comes_back_with_what_it_kept(files: Files, tmp_path: Path) -> None:
    """The other one is held until it is there again, so that the run does not end without it."""
    watch = Signalling(signal.SIGKILL)
    held = 0

    def on_event(event: Event) -> None:
        nonlocal held
        if not held and isinstance(event, Stepped) and event.slot == 1:
            held = workers_here()[0]
            os.kill(held, signal.SIGSTOP)
        if isinstance(event, Restarted):
            os.kill(held, signal.SIGCONT)
        watch(event)

    journal = run_local(rounds(LONG), files, tmp_path, on_event)

    [restart] = [event for event in watch.events if isinstance(event, Restarted)]
    assert restart.reason == "worker 1 was killed by SIGKILL"
    assert restart.slot == 1
    last_of_1 = len(journal.entries) - 2
    assert last_of_1 not in absences(journal)
    assert_found_again(journal, files)


def test_straggler_is_left_out_after_the_deadline(files: Files, tmp_path: Path) -> None:
    watch = Signalling(signal.SIGSTOP)

    journal = run_local(rounds(LONG), files, tmp_path, watch, deadline_s=0.5)

    found = absences(journal)
    assert Absence.LATE in found.values()
    assert [one.reason for one in watch.left_out][:1] == ["it was not done by the deadline"]
    assert_found_again(journal, files)


def test_worker_that_stands_still_is_started_anew_where_all_are_needed(
    files: Files, tmp_path: Path
) -> None:
    """Without a deadline, and with a quorum of all, nobody could go on."""
    watch = Signalling(signal.SIGSTOP)

    journal = run_local(rounds(LONG, quorum=2), files, tmp_path, watch, stall_s=5)

    [restart] = [event for event in watch.events if isinstance(event, Restarted)]
    assert restart.slot == 1
    assert re.fullmatch(r"worker 1 said nothing for \d+ s", restart.reason)
    assert absences(journal) == {}
    assert_found_again(journal, files)


def test_run_goes_on_after_all_were_killed(
    files: Files, tmp_path: Path, undisturbed: tuple[Journal, list[Event]]
) -> None:
    """In the second round, with its parts decided on."""

    def on_event(event: Event) -> None:
        if isinstance(event, Finished) and event.entry.number == 4:
            # Its workers end with it.
            os.kill(supervisor_here(), signal.SIGKILL)

    with pytest.raises(RunError, match="was killed by SIGKILL"):
        run_local(rounds(), files, tmp_path, on_event)
    journal = run_local(rounds(), files, tmp_path)

    assert journal.trace.root == undisturbed[0].trace.root
    assert absences(journal) == {}


def test_damaged_states_are_computed_again(
    files: Files, tmp_path: Path, undisturbed: tuple[Journal, list[Event]]
) -> None:
    """Here what a worker left of the last round, and its merge."""
    journal, _ = undisturbed
    shutil.copytree(journal.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.keras").unlink()
    for number in (3 * ROUNDS - 1, 3 * ROUNDS):
        for path in (
            Journal.read(tmp_path).path_of(number),
            tmp_path / "exchange" / "states" / f"{journal.entries[number].state}.safetensors",
        ):
            path.write_bytes(b"half")

    again = run_local(rounds(), files, tmp_path)

    assert again.trace.root == journal.trace.root
    assert again.state(3 * ROUNDS - 1) == journal.state(3 * ROUNDS - 1)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("yard")


@pytest.fixture(scope="module")
def published(files: Files, yard: Path) -> dict[str, Any]:
    """Two rounds of two workers, by the command."""
    store = _store(yard)
    data = _command(["content", "add", str(files.train), *store])["cid"]
    document = json.loads(manifest_of("mlp", until={"steps": 6}).canonical)
    document["data"]["train"]["path"] = f"ipfs://{data}"
    document["data"]["test"] = document["data"]["train"]
    (yard / "manifest.json").write_text(json.dumps(document))
    return _command([*_run(yard), "--publish"])


def test_commands_run_publish_and_audit(yard: Path, published: dict[str, Any]) -> None:
    audited = _command(_audit(yard, published["cid"], 4, 5))

    assert published["segments"] == 6
    assert published["sent_bytes"] > 4 * 4 * (144 * 24 + 24 * 10)
    assert [one["segment"] for one in audited["segments"]] == [4, 5]
    assert audited["agrees"]
    key = yard / "run" / "peers" / "1" / "key"
    assert [one["signer"] for one in audited["segments"]] == [address_of(key.read_bytes()), None]


def test_finished_run_shows_its_test_again(yard: Path, published: dict[str, Any]) -> None:
    model = (yard / "run" / "model.keras").stat().st_mtime_ns

    again = _command(_run(yard))

    assert again["tested"] == published["tested"]
    assert again["tested"]["examples"] == 96
    assert (yard / "run" / "model.keras").stat().st_mtime_ns == model


def test_merges_of_nonsense_that_was_committed_to_are_wrong(
    yard: Path, published: dict[str, Any], tmp_path: Path
) -> None:
    """Here a leaf larger than any in the first round, and one that is no state in the second."""
    _command(["content", "get", published["cid"], "-o", str(tmp_path / "run"), *_store(yard)])
    manifest = Manifest.parse((tmp_path / "run" / "manifest.json").read_bytes())
    trace = json.loads((tmp_path / "run" / "trace.json").read_text())
    for number, data in ((1, bytes(most_state_bytes(manifest) + 1)), (5, b"nonsense")):
        (tmp_path / "run" / "states" / f"{number:06}.safetensors").write_bytes(data)
        trace["states"][number] = sha256(data).hexdigest()
    made_up = TraceList.of(Trace([bytes.fromhex(one) for one in trace["states"]]))
    (tmp_path / "run" / "trace.json").write_text(made_up.model_dump_json())
    cid = _command(["content", "add", str(tmp_path / "run"), *_store(yard)])["cid"]

    audited = _command(_audit(yard, cid, 1, 2, 5), exit_code=4)

    right, *wrong = audited["segments"]
    assert right["agrees"]
    assert [one["found"] for one in wrong] == [None, None]
    assert "too large for a state of this manifest" in wrong[0]["reason"]
    assert "is no state" in wrong[1]["reason"]


def _run(yard: Path) -> list[str]:
    rounds_of_3 = ["--mode", "rounds", "--workers", "2", "--local-steps", "3"]
    kept = ["--folder", str(yard / "run"), *_store(yard)]
    return ["engine", "run", str(yard / "manifest.json"), *rounds_of_3, *kept]


def _store(yard: Path) -> list[str]:
    return ["--store", str(yard / "store"), "--json"]


def _audit(yard: Path, cid: str, *segments: int) -> list[str]:
    asked = [part for one in segments for part in ("--segment", str(one))]
    return ["audit", cid, *asked, "--cache", str(yard / "cache"), *_store(yard)]


def _command(arguments: list[str], exit_code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == exit_code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
