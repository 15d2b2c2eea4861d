"""What an auditor looks at whose segment lies after the end of a run: how it came to that end."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.datasets import add_arrays
from trainyard.engine.auditing import recompute
from trainyard.engine.auditor import Inputs, state_file
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files, fetch_files
from trainyard.engine.sealing import seal
from trainyard.engine.state import WEIGHTS, State
from trainyard.protocol.manifest import Manifest
from worker_agent.behind import look_behind
from worker_agent.jobs import LookJob
from worker_agent.progress import LOOKED, WRONG, Shelf
from worker_agent.settings import ChainSettings, Settings

SETTINGS = Settings(
    chain=ChainSettings(
        endpoints=("http://127.0.0.1:1",), chain_id=1337, market="0x" + "99" * 20, start_block=0
    )
)
# So large that the next step has no number for its loss.
HUGE = np.float32(1e30)


@dataclass(frozen=True, slots=True)
class Yard:
    folder: Path
    content: Content
    train: str

    def manifest(self, **changes: Any) -> Manifest:
        document = json.loads(manifest_of("mlp", **changes).canonical)
        document["data"]["train"]["path"] = self.train
        return Manifest.of(document)

    def files(self, manifest: Manifest) -> Files:
        return fetch_files(manifest, self.content, self.folder / "files")

    def look(self, journal: Journal, segment: int, shelf: Shelf) -> None:
        result = seal(journal, self.content, is_open=True)
        job = LookJob(
            home=shelf.folder,
            task=1,
            manifest=result.manifest,
            result=result.digest.hex(),
            root=result.root,
            segment=segment,
        )
        look_behind(job, SETTINGS, shelf, self.content)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("yard")
    write_data(folder / "data")
    content = Content(EmbeddedStore(folder / "store"))
    arrays = {name: np.load(folder / "data" / f"{name}.npy") for name in ("image", "label")}
    yield Yard(folder, content, f"ipfs://{add_arrays(content, arrays).cid}")
    content.close()


@pytest.fixture(scope="module")
def made_up(yard: Yard) -> Journal:
    """A run whose first segment is made up such that the second has to be its end."""
    manifest = yard.manifest()
    honest = run_local(manifest, yard.files(manifest), yard.folder / "honest")
    first = honest.state(1)
    huge = {
        name: one * HUGE if name.startswith(WEIGHTS) and one.dtype == np.float32 else one
        for name, one in first.tensors.items()
    }
    folder = yard.folder / "made-up"
    folder.mkdir()
    State(huge).save(folder / "huge")
    inputs = {1: Inputs(states=(folder / "huge",))}
    recompute(manifest, yard.files(manifest), inputs, folder)
    end = State.load(state_file(folder, 1))
    journal = Journal.open(folder / "run", manifest.canonical)
    for number, state in enumerate((honest.state(0), State(huge), end, end, end)):
        step = int(state.tensors["run/step"])
        journal.append(Entry(number=number, state=state.hash.hex(), step=step), state)
    return journal


def test_what_made_a_run_end_is_found(yard: Yard, made_up: Journal, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)

    yard.look(made_up, 2, shelf)

    wrong = shelf.progress().wrong
    assert wrong is not None
    assert (wrong.segment, wrong.trace.root) == (0, made_up.trace.root)
    assert shelf.progress().has_looked


def test_an_end_that_is_what_it_seems_is_let_be(yard: Yard, tmp_path: Path) -> None:
    manifest = yard.manifest(optimizer={"type": "SGD", "learning_rate": 1e30})
    diverged = run_local(manifest, yard.files(manifest), yard.folder / "diverged")
    assert diverged.entries[2].state == diverged.entries[-1].state
    shelf = Shelf(tmp_path)

    yard.look(diverged, 3, shelf)

    assert shelf.read(WRONG) is None
    assert shelf.read(LOOKED) == {"segment": 3, "wrong": None}
