"""What a published run serves: bounded before it is fetched, and checked before it has its name."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import NETS, manifest_of
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.evidence import Kept, Published, TraceList
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.limits import most_state_bytes, most_trace_bytes
from trainyard.engine.publishing import publish
from trainyard.engine.state import State
from trainyard.protocol.trace import Trace

MANIFEST = manifest_of("mlp")
STATES = [State({"a": np.asarray(number)}) for number in range(5)]


@dataclass
class Yard:
    """A run to be published, and the folder of whoever audits it."""

    run: Path
    audits: Path
    content: Content

    def open(self) -> Published:
        cid = self.content.add(self.run).cid
        return Published.open(self.content, ContentPath(cid), self.audits, None)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    run = tmp_path / "run"
    (run / "states").mkdir(parents=True)
    (tmp_path / "audits").mkdir()
    (run / "manifest.json").write_bytes(MANIFEST.canonical)
    trace = TraceList.of(Trace([state.hash for state in STATES]))
    (run / "trace.json").write_text(trace.model_dump_json())
    for number, state in enumerate(STATES):
        state.save(run / "states" / f"{number:06}.safetensors")
    content = Content(EmbeddedStore(tmp_path / "store"))
    yield Yard(run, tmp_path / "audits", content)
    content.close()


def test_served_state_is_kept_under_its_hash(yard: Yard) -> None:
    [path] = yard.open().inputs(2).states

    assert State.load(path) == STATES[2]
    assert path.name == f"{STATES[2].hash.hex()}.safetensors"
    assert [one.name for one in yard.audits.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["folder", "other"])
def test_what_is_no_state_is_refused_and_leaves_nothing(yard: Yard, kind: str) -> None:
    path = yard.run / "states" / "000002.safetensors"
    path.unlink()
    if kind == "folder":
        path.mkdir()
        (path / "file").write_bytes(b"poison")
    else:
        path.write_bytes(b"other")
    says = {
        "folder": "is no file, but a directory",
        "other": "serves another state as states/000002 than its trace names",
    }

    with pytest.raises(RunError, match=says[kind]):
        yard.open().inputs(2)

    assert list(yard.audits.iterdir()) == []


def test_state_that_is_too_large_is_not_fetched_and_is_wrong(yard: Yard) -> None:
    most = most_state_bytes(MANIFEST)
    (yard.run / "states" / "000002.safetensors").write_bytes(bytes(most + 1))

    found = yard.open().inputs(2)

    assert found.nonsense.startswith("too large for a state of this manifest: ")
    assert found.nonsense.endswith(f"has {most + 1} bytes, and in this run it has at most {most}")
    assert list(yard.audits.iterdir()) == []


def test_too_large_state_of_a_folder_is_wrong_if_it_is_the_journals(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, MANIFEST.canonical)
    data = bytes(most_state_bytes(MANIFEST) + 1)
    journal.append(Entry(number=0, state=sha256(data).hexdigest(), step=0), STATES[0])

    with pytest.raises(RunError, match="is not the state that the journal names"):
        Kept(tmp_path).inputs(0)
    journal.path_of(0).write_bytes(data)

    assert "too large for a state of this manifest" in Kept(tmp_path).inputs(0).nonsense


ROUNDS = manifest_of("mlp", mode="rounds", workers=2, until={"steps": 3}, rounds={"local_steps": 3})
NAMELESS = b"".join(State({"a": np.asarray(1)}).parts())


@pytest.mark.parametrize(
    ("leaf", "reason"), [(b"nonsense", "is no state"), (NAMELESS, "the state names no delta")]
)
@pytest.mark.parametrize("published", [True, False])
def test_merge_of_a_leaf_that_is_none_is_wrong(
    yard: Yard, *, leaf: bytes, reason: str, published: bool
) -> None:
    """If the trace names these bytes: to commit to nonsense must not be better than to cheat."""
    served = [b"".join(STATES[0].parts()), leaf, leaf, leaf]
    trace = TraceList.of(Trace([sha256(data).digest() for data in served]))
    shutil.rmtree(yard.run)
    journal = Journal.open(yard.run, ROUNDS.canonical)
    for number, data in enumerate(served):
        journal.append(Entry(number=number, state=trace.states[number], step=0), STATES[0])
        journal.path_of(number).unlink()
        journal.path_of(number).write_bytes(data)
    (yard.run / "trace.json").write_text(trace.model_dump_json())

    run = yard.open() if published else Kept(yard.run)

    assert reason in run.inputs(2).nonsense


@pytest.mark.parametrize("kind", ["nothing", "file", "folder", "nonsense"])
def test_documents_that_are_none_are_as_good_as_missing(yard: Yard, kind: str) -> None:
    """Whoever serves nonsense must not come off better than who serves nothing."""
    offer = yard.run / "offers" / "000000-0.json"
    if kind == "file":
        offer.parent.write_bytes(b"no folder")
    if kind == "folder":
        offer.mkdir(parents=True)
        (yard.run / "environment.json").mkdir()
    if kind == "nonsense":
        (yard.run / "environment.json").write_bytes(b"[")

    found = yard.open()

    assert (found.offer(offer.name), found.environment_class) == (None, None)


def test_trace_is_no_longer_than_the_manifest_says(yard: Yard) -> None:
    size = most_trace_bytes(MANIFEST) + 1
    (yard.run / "trace.json").write_bytes(b" " * size)

    with pytest.raises(RunError, match=rf"trace.json has {size} bytes"):
        yard.open()


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(
    "optimizer", [{"type": "Adam", "amsgrad": True}, {"type": "RMSprop", "centered": True}]
)
def test_states_of_a_run_are_within_the_bound(net: str, optimizer: dict[str, object]) -> None:
    """By the manifest's own count of weights, each with all that an optimiser can remember."""
    manifest = manifest_of(net, optimizer={"learning_rate": 0.1, **optimizer})
    values = manifest.model.parameters + 3 * manifest.model.trainable_parameters

    assert 4 * values < most_state_bytes(manifest) < 4 * values + (1 << 20)


def test_damaged_state_is_not_published(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "run", MANIFEST.canonical)
    for number, state in enumerate(STATES):
        entry = Entry(number=number, state=state.hash.hex(), step=3 * number)
        journal.append(entry, state)
    STATES[1].save(journal.path_of(2))
    content = Content(EmbeddedStore(tmp_path / "store"))

    with pytest.raises(StateError, match="is not the state that the journal names"):
        publish(journal, content)

    content.close()
