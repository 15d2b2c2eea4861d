"""Whole runs in processes of their own: journals, clusters, losses, audits."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.engine.auditing import audit
from trainyard.engine.counting import Stop
from trainyard.engine.data import open_folder
from trainyard.engine.errors import RunError
from trainyard.engine.events import Ended, Event, Finished, Restarted, Started
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.launching import run_local
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.material import Files
from trainyard.engine.program import build
from trainyard.engine.training import Material, Training
from trainyard.engine.worker import Job, work
from trainyard.protocol.manifest import Manifest

# A run of a manifest that has ended, in a folder.
Finish = Callable[[Manifest, Path], Journal]
Run = Callable[[Manifest, Files, Path], Journal]

# Steps enough that a worker is still at them when somebody gets round to killing it.
LONG = 120


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write_data(tmp_path_factory.mktemp("data"))


def run_here(manifest: Manifest, files: Files, folder: Path) -> Journal:
    """What a worker alone does, in this process: another would start longer than it computes."""
    Journal.open(folder, manifest.canonical)
    work(Job(manifest=folder / "manifest.json", folder=folder, train=files.train))
    return Journal.read(folder)


def training_here(manifest: Manifest, files: Files) -> Training:
    """What computes any segment of a manifest, those of a cluster too."""
    return Training(
        manifest, build(manifest), Material(open_folder(manifest.data.train, files.train))
    )


@pytest.fixture(scope="module")
def finished(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Finish:
    """Runs that tests begin with: each is run once, and a test gets a copy that it may change."""
    runs: dict[bytes, Path] = {}

    def finish(manifest: Manifest, folder: Path) -> Journal:
        if manifest.canonical not in runs:
            run: Run = run_here if manifest.training.workers == 1 else run_local
            journal = run(manifest, files, tmp_path_factory.mktemp("finished"))
            runs[manifest.canonical] = journal.folder
        shutil.copytree(runs[manifest.canonical], folder, dirs_exist_ok=True)
        return Journal.read(folder)

    return finish


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def supervisor_here() -> int:
    [supervisor] = [
        child
        for child in children_of(os.getpid())
        if b"trainyard.engine.supervisor" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return supervisor


def workers_here() -> list[int]:
    """The processes of workers, in the order of slots."""
    return children_of(supervisor_here())


def killing(slot: int, number: int) -> Callable[[Event], None]:
    return signalling(slot, number, signal.SIGKILL)


def signalling(slot: int, number: int, what: signal.Signals) -> Callable[[Event], None]:
    """Signal the worker of `slot` once state `number` is there, and only once."""
    done = False

    def on_event(event: Event) -> None:
        nonlocal done
        if not done and isinstance(event, Finished) and event.entry.number == number:
            done = True
            os.kill(workers_here()[slot], what)

    return on_event


def test_run_is_told_and_kept(files: Files, tmp_path: Path) -> None:
    manifest = manifest_of("lenet")
    events: list[Event] = []

    journal = run_local(manifest, files, tmp_path / "run", events.append)

    assert [entry.number for entry in journal.entries] == [0, 1, 2, 3, 4]
    assert [entry.step for entry in journal.entries] == [0, 3, 6, 9, 12]
    assert all(
        journal.state(number).hash.hex() == journal.entries[number].state for number in range(5)
    )
    assert journal.state(4).size < most_state_bytes(manifest)
    assert isinstance(events[0], Started)
    told = [event.entry for event in events if isinstance(event, Finished)]
    assert told == journal.entries
    [end] = [event for event in events if isinstance(event, Ended)]
    assert end.root == journal.trace.root.hex()


def test_finished_run_is_not_run_again(files: Files, finished: Finish, tmp_path: Path) -> None:
    manifest = manifest_of("mlp")
    first = finished(manifest, tmp_path)
    events: list[Event] = []

    again = run_local(manifest, files, tmp_path, events.append)

    assert again.entries == first.entries
    assert not [event for event in events if isinstance(event, Finished)]


@pytest.mark.parametrize("kept", range(6))
def test_run_goes_on_from_every_segment(
    files: Files, finished: Finish, tmp_path: Path, kept: int
) -> None:
    """Whatever a crash leaves of the rest: half a line, half a state. Once in its own process."""
    manifest = manifest_of("batch_norm")
    whole = finished(manifest, tmp_path)
    root = whole.trace.root
    journal = Journal.open(tmp_path, manifest.canonical)
    journal.rewind(kept)
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"number":')
    # The next one to be written; of a run that has all of them, the last.
    whole.path_of(min(kept, 4)).write_bytes(b"half")

    run: Run = run_local if kept == 2 else run_here
    assert run(manifest, files, tmp_path).trace.root == root


def test_cluster_goes_on_from_every_segment(files: Files, tmp_path: Path) -> None:
    """Whichever worker has it, and whatever a crash left. The states are those of one process."""
    manifest = manifest_of("mlp", workers=2, until={"steps": 6})
    root = run_here(manifest, files, tmp_path / "alone").trace.root
    own, peer = tmp_path / "run", tmp_path / "run" / "peers" / "1"
    for folder in (own, peer):
        shutil.copytree(tmp_path / "alone", folder)
    for kept, longer, shorter in ((2, peer, own), (1, own, peer)):
        for folder, count in ((longer, kept), (shorter, kept - 1)):
            journal = Journal.open(folder, manifest.canonical)
            journal.rewind(count)
            journal.path_of(count).write_bytes(b"half")

        assert run_local(manifest, files, own).trace.root == root


def test_run_that_was_over_goes_on_with_the_file_of_its_end(files: Files, tmp_path: Path) -> None:
    manifest = manifest_of("mlp", optimizer={"type": "SGD", "learning_rate": 1e30})
    whole = run_here(manifest, files, tmp_path)
    Journal.open(tmp_path, manifest.canonical).rewind(3)
    whole.path_of(3).unlink()
    whole.path_of(4).unlink()

    again = run_local(manifest, files, tmp_path)

    assert again.entries[-1].stop is Stop.DIVERGED
    assert again.trace.root == whole.trace.root
    assert len({again.path_of(number).stat().st_ino for number in (2, 3, 4)}) == 1


def test_cluster_that_diverges_ends_as_one_process_does(files: Files, tmp_path: Path) -> None:
    """Both workers go back to the step before, together, and what they kept is evidence."""
    manifest = manifest_of(
        "batch_norm", workers=2, optimizer={"type": "SGD", "learning_rate": 1e30}
    )

    journal = run_local(manifest, files, tmp_path / "cluster")

    alone = run_here(manifest, files, tmp_path / "alone")
    assert journal.entries[-1].stop is Stop.DIVERGED
    assert 0 < journal.entries[-1].step < manifest.plan.steps
    assert journal.trace.root == alone.trace.root


def test_damaged_state_is_computed_again(files: Files, finished: Finish, tmp_path: Path) -> None:
    manifest = manifest_of("mlp")
    whole = finished(manifest, tmp_path)
    path = whole.path_of(4)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    again = run_local(manifest, files, tmp_path)

    assert again.trace.root == whole.trace.root
    assert again.state(4) == whole.state(4)


def test_killed_worker_is_started_anew(files: Files, tmp_path: Path) -> None:
    manifest = manifest_of("batch_norm", until={"steps": LONG})
    undisturbed = run_here(manifest, files, tmp_path / "undisturbed")
    events: list[Event] = []
    kill = killing(0, 2)

    def on_event(event: Event) -> None:
        events.append(event)
        kill(event)

    disturbed = run_local(manifest, files, tmp_path / "disturbed", on_event)

    assert disturbed.trace.root == undisturbed.trace.root
    [restart] = [event for event in events if isinstance(event, Restarted)]
    assert restart.reason == "worker 0 was killed by SIGKILL"
    assert restart.kept >= 3
    assert restart.lost_s > 0


def test_folder_of_another_run_is_refused(files: Files, finished: Finish, tmp_path: Path) -> None:
    finished(manifest_of("mlp"), tmp_path)

    with pytest.raises(RunError, match="a run of another manifest: name another folder"):
        run_local(manifest_of("lenet"), files, tmp_path)


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nowhere"):
        run_local(manifest_of("mlp"), Files(train=tmp_path / "nowhere"), tmp_path / "run")


def test_label_of_no_class_fails_at_once(tmp_path: Path) -> None:
    """A worker that fails is not one that is lost, and its peers are not the reason."""
    files = write_data(tmp_path / "data")
    labels = np.load(files.train / "label.npy")
    labels[5] = 12
    np.save(files.train / "label.npy", labels)
    events: list[Event] = []

    with pytest.raises(RunError, match=r"worker \d: InvalidArgumentError: .*(not in|out of)"):
        run_local(manifest_of("mlp", workers=2), files, tmp_path / "run", events.append)

    assert not [event for event in events if isinstance(event, Restarted)]


def test_cluster_outlives_the_loss_of_its_leader_and_of_a_peer(
    files: Files, tmp_path: Path
) -> None:
    """And what it computes is what one process computes that plays all of them."""
    manifest = manifest_of("batch_norm", workers=2, until={"steps": LONG})
    events: list[Event] = []
    kills = killing(0, 3), killing(1, 10)
    clusters: list[tuple[str, ...]] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if isinstance(event, Started) and event.slot == 0:
            jobs = [tmp_path / "job.json", tmp_path / "peers" / "1" / "job.json"]
            [peers] = {Job.model_validate_json(job.read_bytes()).peers for job in jobs}
            clusters.append(peers)
        for kill in kills:
            kill(event)

    journal = run_local(manifest, files, tmp_path, on_event)

    restarts = [event.kept for event in events if isinstance(event, Restarted)]
    assert len(restarts) == 2
    assert restarts[0] >= 3
    assert restarts[1] >= 10
    # Each time by a cluster spec in which nobody has the address that anybody had before.
    assert len(clusters) == 3
    assert len({peer for peers in clusters for peer in peers}) == 6
    assert [event.root for event in events if isinstance(event, Ended)] == [
        journal.trace.root.hex()
    ] * 2
    alone = training_here(manifest, files)
    for segment in range(0, LONG // 3, 7):
        found = alone.run(segment, journal.state(segment)).state
        assert found.hash.hex() == journal.entries[segment + 1].state


def test_cluster_that_stands_still_is_started_anew(files: Files, tmp_path: Path) -> None:
    """One worker is stopped, and the other waits for it: TensorFlow sees that later, if at all."""
    manifest = manifest_of("mlp", workers=2, until={"steps": LONG})
    events: list[Event] = []
    stop = signalling(1, 2, signal.SIGSTOP)

    def on_event(event: Event) -> None:
        events.append(event)
        stop(event)

    journal = run_local(manifest, files, tmp_path, on_event, stall_s=4)

    restarts = {event.reason for event in events if isinstance(event, Restarted)}
    assert "no worker took a step for 4 s" in restarts
    assert len(journal.entries) == LONG // 3 + 1


@pytest.mark.parametrize("slot", [0, 1])
def test_worker_without_a_journal_takes_another_ones(
    files: Files, finished: Finish, tmp_path: Path, slot: int
) -> None:
    """And nothing of the run is lost, whichever worker it is."""
    manifest = manifest_of("mlp", workers=2)
    whole = finished(manifest, tmp_path)
    (tmp_path / "keep").write_text("the user's own")
    folder = tmp_path if slot == 0 else tmp_path / "peers" / "1"
    (folder / "journal.jsonl").unlink()

    again = run_local(manifest, files, tmp_path)

    assert again.trace.states == whole.trace.states
    assert again.state(4) == whole.state(4)
    assert (tmp_path / "keep").exists()
    assert not (tmp_path / "peers" / "1" / "peers").exists()


def test_auditor_finds_the_segment_that_was_made_up(files: Files, tmp_path: Path) -> None:
    journal = run_here(manifest_of("lenet"), files, tmp_path)
    wrong = journal.state(2)
    kernel = wrong.tensors["weights/out/kernel"].copy()
    kernel[0, 0] += 1e-7
    forged = type(wrong)({**wrong.tensors, "weights/out/kernel": kernel})
    forged.save(journal.path_of(2))
    lines = [entry.model_dump_json() for entry in journal.entries]
    lines[2] = lines[2].replace(journal.entries[2].state, forged.hash.hex())
    (tmp_path / "journal.jsonl").write_text("\n".join(lines) + "\n")

    found = audit(tmp_path, files, range(4))

    claimed = [entry.state for entry in Journal.read(tmp_path).entries[1:]]
    assert [
        answer.state == state for answer, state in zip(found.answers, claimed, strict=True)
    ] == [
        True,
        False,
        # From the state that was made up, nobody gets to the one that follows.
        False,
        True,
    ]


def test_auditor_begins_with_the_manifest_alone(files: Files, tmp_path: Path) -> None:
    """A run of other first weights is consistent in itself, and no run of this manifest."""
    other = training_here(manifest_of("mlp", seed=99), files).start()
    journal = Journal.open(tmp_path / "run", manifest_of("mlp").canonical)
    journal.append(Entry(number=0, state=other.hash.hex(), step=0), other)
    forged = run_here(manifest_of("mlp"), files, tmp_path / "run")

    found = audit(tmp_path / "run", files, range(4))

    agree = [
        answer.state == entry.state
        for answer, entry in zip(found.answers, forged.entries[1:], strict=True)
    ]
    assert agree == [False, True, True, True]
    assert found.start != forged.entries[0].state


def test_run_of_two_threads_is_found_again_by_others(files: Files, tmp_path: Path) -> None:
    """As all examples have it: each of three processes splits its sums into two, and alike."""
    manifest = manifest_of("lenet", threads=2, batch=96)
    journals = [run_local(manifest, files, tmp_path / name) for name in ("one", "other")]

    found = audit(tmp_path / "one", files, range(4))

    claimed = [[entry.state for entry in journal.entries] for journal in journals]
    assert claimed[0] == claimed[1] == [found.start, *(one.state for one in found.answers)]
