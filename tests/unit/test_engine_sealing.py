"""Evidence of a run whose workers were away for so long that all of it says little else."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.engine import publishing
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.leaves import Absence, absent_in
from trainyard.engine.limits import most_inputs_bytes
from trainyard.engine.sealing import INPUTS, seal
from trainyard.engine.state import State
from trainyard.engine.unsealing import Evidence
from trainyard.protocol.manifest import Local, Manifest, Merge, RoundsPlan

ROUNDS = 300


def rounds_manifest(inner: str) -> Manifest:
    return manifest_of(
        mode="rounds",
        workers=2,
        until={"steps": ROUNDS},
        steps_per_segment=1,
        rounds={"local_steps": 1, "inner": inner},
    )


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    content = Content(EmbeddedStore(tmp_path / "store"))
    yield content
    content.close()


def deserted(folder: Path, manifest: Manifest) -> Journal:
    """A run in which nobody was there in any round."""
    plan = manifest.plan
    assert isinstance(plan, RoundsPlan)
    states = [State({"a": np.asarray(0)})]
    for segment in range(plan.segments):
        match plan.part(segment):
            case Local():
                states.append(absent_in(plan, segment, Absence.AWAY))
            case Merge():
                states.append(State({"a": np.asarray(segment)}))
    journal = Journal.open(folder, manifest.canonical)
    # Without a wait for the disk at each of them.
    for number, state in enumerate(states):
        journal.path_of(number).write_bytes(b"".join(state.parts()))
        journal.entries.append(Entry(number=number, state=state.hash.hex(), step=0))
    return journal


@pytest.mark.parametrize(("inner", "shown"), [("kept", ROUNDS + 1), ("fresh", 2)])
def test_worker_that_was_always_away_is_shown_to_have_been(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str, shown: int
) -> None:
    monkeypatch.setattr(publishing, "find_class", lambda: type("Class", (), {"id": "ab" * 32}))
    manifest = rounds_manifest(inner)
    journal = deserted(tmp_path / "run", manifest)
    assert isinstance(manifest.plan, RoundsPlan)
    last = manifest.plan.segment(Local(ROUNDS - 1, 1))

    result = seal(journal, content, served=(last,))
    root = bytes.fromhex(result.root)
    evidence = Evidence.open(content, manifest, result.digest, root, tmp_path / "evidence")
    found = evidence.inputs(last)

    assert found.absence is Absence.AWAY
    assert [State.load(path) for path in found.states] == [journal.state(last - 1)]
    place = evidence.place.child(f"{last:06}").child(INPUTS)
    data = b"".join(content.cat(place))
    assert data.count(b'"hash"') == shown
    assert len(data) < most_inputs_bytes(manifest)
