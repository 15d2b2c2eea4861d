"""What a published run serves: bounded before it is fetched, and checked before it has its name."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import NETS, manifest_of
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.evidence import Published, TraceList
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


@pytest.mark.parametrize("kind", ["folder", "large", "other"])
def test_what_is_no_state_is_refused_and_leaves_nothing(yard: Yard, kind: str) -> None:
    path = yard.run / "states" / "000002.safetensors"
    path.unlink()
    if kind == "folder":
        path.mkdir()
        (path / "file").write_bytes(b"poison")
    elif kind == "large":
        path.write_bytes(bytes(most_state_bytes(MANIFEST) + 1))
    else:
        path.write_bytes(b"other")
    says = {
        "folder": "is no file, but a directory",
        "large": rf"bytes, and in this run it has at most {most_state_bytes(MANIFEST)}",
        "other": "serves another state as states/000002 than its trace names",
    }

    with pytest.raises(RunError, match=says[kind]):
        yard.open().inputs(2)

    assert list(yard.audits.iterdir()) == []


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
