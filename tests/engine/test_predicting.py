"""Runs that predict: bits that anybody finds again, in whichever order and part."""

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.engine.nets import ADDRESS, NETS, RECORDS, source, write_data
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import audit
from trainyard.engine.errors import RunError
from trainyard.engine.evidence import Published
from trainyard.engine.importing import measures_of
from trainyard.engine.journal import Journal
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.material import Files
from trainyard.engine.measuring import measure
from trainyard.engine.predictions import read_predictions
from trainyard.engine.program import build_network
from trainyard.engine.publishing import publish
from trainyard.engine.rehearsing import shortened
from trainyard.engine.state import PREDICTIONS, State
from trainyard.engine.transplanting import weights_of
from trainyard.engine.variables import named_weights
from trainyard.engine.worker import Job, initial_weights, open_predicting, work
from trainyard.protocol.manifest import Manifest

# A short one at the end: four segments, of two batches but the last.
BATCH = 14


def predicting(net: str = "batch_norm", **training: Any) -> Manifest:
    train = source()
    del train["target"]
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": [12, 12, 1], "dtype": "uint8"}],
                "layers": NETS[net],
                "outputs": ["out"],
            },
            "data": {"train": train},
            "training": {
                "mode": "predict",
                "batch": BATCH,
                "until": {"epochs": 1},
                "steps_per_segment": 2,
                "seed": 3,
                **training,
            },
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Images, and weights that no seed gives."""
    found = write_data(tmp_path_factory.mktemp("data"))
    network = build_network(predicting())
    rng = np.random.default_rng(5)
    named = named_weights(network)
    drawn = {
        name: rng.uniform(0.1, 0.3, one.shape).astype(str(one.dtype))
        if "float" in str(one.dtype)
        else np.asarray(one.value)
        for name, one in named.items()
    }
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    State(drawn).save(path)
    return Files(train=found.train, initial_state=path)


def run_here(manifest: Manifest, files: Files, folder: Path) -> Journal:
    Journal.open(folder, manifest.canonical)
    work(job_of(manifest, files, folder))
    return Journal.read(folder)


def job_of(manifest: Manifest, files: Files, folder: Path) -> Job:
    (folder / "manifest.json").write_bytes(manifest.canonical)
    return Job(
        manifest=folder / "manifest.json",
        folder=folder,
        train=files.train,
        initial_state=files.initial_state,
    )


@pytest.fixture(scope="module")
def finished(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_here(predicting(), files, tmp_path_factory.mktemp("run")).folder


def rows_in(journal: Journal) -> Any:
    states = (journal.state(number) for number in range(1, len(journal.entries)))
    return np.concatenate([state.tensors[PREDICTIONS] for state in states])


def test_predictions_are_what_keras_predicts_in_the_order_of_the_records(
    finished: Path, files: Files
) -> None:
    journal = Journal.read(finished)

    network = build_network(predicting())
    for name, variable in named_weights(network).items():
        variable.assign(journal.state(0).tensors[name])
    expected = network.model.predict(np.load(files.train / "image.npy"), verbose=0)
    assert len(journal.entries) == 5
    np.testing.assert_allclose(rows_in(journal), expected, rtol=1e-5, atol=1e-6)
    # The model makes something else of each record, or their order would not be seen.
    assert len(np.unique(expected, axis=0)) == RECORDS


def test_an_auditor_finds_every_segment_to_the_last_bit(finished: Path, files: Files) -> None:
    """In another process, last segment first in this table as in no run."""
    entries = Journal.read(finished).entries

    found = audit(finished, files, [3, 0, 2, 1])

    assert found.start == entries[0].state
    assert {one.segment: one.state for one in found.answers} == {
        entry.number - 1: entry.state for entry in entries[1:]
    }


def test_a_tampered_prediction_is_found_in_its_segment_alone(
    finished: Path, files: Files, tmp_path: Path
) -> None:
    """One number in one row: the hash is another, and an auditor cannot but find the right one."""
    honest = Journal.read(finished)
    state = honest.state(3)
    rows = state.tensors[PREDICTIONS].copy()
    rows[1, 1] += np.float32(0.001)
    forged = State({**state.tensors, PREDICTIONS: rows})
    cheat = Journal.open(tmp_path, honest.manifest)
    for number, entry in enumerate(honest.entries):
        one = forged if number == 3 else honest.state(number)
        cheat.append(entry.model_copy(update={"state": one.hash.hex()}), one)

    found = audit(tmp_path, files, range(4))

    claimed = [entry.state for entry in Journal.read(tmp_path).entries[1:]]
    wrong = [one.segment for one in found.answers if one.state != claimed[one.segment]]
    assert wrong == [2]
    assert cheat.trace.root != honest.trace.root


def test_other_weights_are_found_in_the_first_state(
    finished: Path, files: Files, tmp_path: Path
) -> None:
    """Nobody is asked for the weights: an auditor has them from the manifest."""
    other = run_here(predicting(), Files(train=files.train), tmp_path)
    job = job_of(predicting(), files, tmp_path)
    auditor = open_predicting(job, predicting())

    start = auditor.start(initial_weights(job))
    found = auditor.run(0, other.state(0)).state

    honest = Journal.read(finished).entries
    assert (start.hash.hex(), found.hash.hex()) == (honest[0].state, honest[1].state)
    assert start.hash.hex() != other.entries[0].state
    assert found.hash.hex() != other.entries[1].state


def test_a_run_that_was_cut_off_goes_on_with_the_same_bits(
    finished: Path, files: Files, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    lines = (tmp_path / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_text("".join(lines[:3]))
    (tmp_path / "states" / "000004.safetensors").unlink()

    journal = run_here(predicting(), files, tmp_path)

    assert journal.trace.root == Journal.read(finished).trace.root


def test_the_bits_are_the_same_in_whichever_parts(
    finished: Path, files: Files, tmp_path: Path
) -> None:
    """Of parts that begin where a batch does, as slices for workers do."""
    whole = rows_in(Journal.read(finished))

    rows = []
    for first, count in ((0, 3 * BATCH), (3 * BATCH, RECORDS - 3 * BATCH)):
        folder = tmp_path / str(first)
        folder.mkdir()
        manifest = predicting(part={"first": first, "records": count}, steps_per_segment=3)
        rows.append(rows_in(run_here(manifest, files, folder)))

    assert np.concatenate(rows).tobytes() == whole.tobytes()


def test_no_state_has_more_bytes_than_the_manifest_says(finished: Path) -> None:
    journal = Journal.read(finished)

    largest = max(journal.state(number).size for number in range(len(journal.entries)))
    assert largest <= most_state_bytes(predicting())


def test_a_prediction_needs_its_weights_first(files: Files, tmp_path: Path) -> None:
    predicted = open_predicting(job_of(predicting(), files, tmp_path), predicting())

    with pytest.raises(RunError, match="begins with its weights"):
        predicted.run(0, State({}))


def test_a_rehearsal_predicts_for_a_few_batches() -> None:
    short = shortened(predicting(part={"first": BATCH, "records": 5 * BATCH}))

    assert (short.plan.steps, short.plan.segments) == (3, 3)
    assert short.training.part is not None
    assert short.training.part.first == BATCH


@pytest.fixture
def content(tmp_path: Path) -> Any:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


def test_a_published_run_gives_its_rows_in_order(
    finished: Path, content: Content, tmp_path: Path
) -> None:
    journal = Journal.read(finished)
    cid = publish(journal, content)
    folder = tmp_path / "fetched"
    folder.mkdir()

    published = Published.open(content, ContentPath.parse(str(cid)), folder, None)

    np.testing.assert_array_equal(read_predictions(published), rows_in(journal))


def model() -> Any:
    keras.utils.set_random_seed(2)
    found = keras.Sequential([keras.Input((3,), name="point"), keras.layers.Dense(2, name="out")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    found.compile("adam", loss, metrics=["accuracy"])
    return found


def test_figures_of_predictions_are_those_of_keras() -> None:
    given = model()
    x = np.random.default_rng(1).normal(size=(2_500, 3)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int64)

    loss, metrics = measures_of(given)
    found = measure(loss, metrics, y, given.predict(x, verbose=0))

    expected = given.evaluate(x, y, verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-4)


def test_the_weights_of_a_model_are_those_that_it_predicts_with() -> None:
    given = model()
    manifest = Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "point", "shape": [3]}],
                "layers": [{"name": "out", "type": "Dense", "units": 2}],
                "outputs": ["out"],
            },
            "data": {
                "train": {
                    "kind": "npz",
                    "path": ADDRESS,
                    "records": 5,
                    "features": {"point": {"dtype": "float32", "shape": [3]}},
                    "inputs": ["point"],
                }
            },
            "training": {"mode": "predict", "batch": 5, "until": {"epochs": 1}, "seed": 1},
        }
    )

    found = weights_of(given, manifest)

    np.testing.assert_array_equal(found.tensors["weights/out/kernel"], given.layers[0].kernel)
