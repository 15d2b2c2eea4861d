"""The manifests in examples/ are valid, have the sizes of the paper, and train."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from examples.cifar10 import prepare as cifar10
from examples.mnist.boost import accuracy_of, added, boost, weights
from examples.mnist.prepare import add_mnist
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import add_arrays, load_arrays
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Manifest

ROOT = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = {f"{path.parent.name}/{path.stem}": path for path in ROOT.glob("*/*.json")}
RECORDS = 80


def read(name: str) -> Manifest:
    return Manifest.parse(EXAMPLES[name].read_bytes())


def shrunk(name: str, **training: Any) -> dict[str, Any]:
    """An example for a few records and steps."""
    document: dict[str, Any] = json.loads(EXAMPLES[name].read_bytes())
    for source in document["data"].values():
        source["records"] = RECORDS
    document["training"] |= {"batch": 40, "until": {"steps": 8}, "steps_per_segment": 4, **training}
    return document


def made_up(shape: list[int]) -> dict[str, Any]:
    """Records of an example's form: noise, with a bright row that tells the label."""
    random = np.random.default_rng(3)
    images = random.integers(0, 100, (RECORDS, *shape), np.uint8)
    labels = random.integers(0, 10, RECORDS).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 2] = 255
    return {"image": images, "label": labels}


def open_training(manifest: Manifest, folder: Path) -> Training:
    return Training(manifest, build(manifest), Material(open_folder(manifest.data.train, folder)))


def test_nets_have_their_sizes() -> None:
    """With all maps of a layer connected to all of the one before; the paper leaves some out."""
    assert {name: read(name).model.trainable_parameters for name in EXAMPLES} == {
        "mnist/mlp300": 784 * 300 + 300 + 300 * 10 + 10,
        "mnist/mlp300_100": 784 * 300 + 300 + 300 * 100 + 100 + 100 * 10 + 10,
        "mnist/lenet1": 3_246,
        "mnist/lenet4": 51_050,
        "mnist/lenet5": 61_706,
        "mnist/boosted_lenet4": 51_050,
        "cifar10/cnn": 113_962,
    }


def test_rates_fall_until_the_end() -> None:
    for name in EXAMPLES:
        optimizer = read(name).training.optimizer
        assert optimizer is not None
        rate = optimizer.learning_rate
        assert not isinstance(rate, float)
        assert rate.type == "CosineDecay"
        assert rate.decay_steps == read(name).plan.steps


def test_manifests_name_mnist(tmp_path: Path) -> None:
    """The real one: whoever prepares it anywhere gets these CIDs."""
    cids = add_mnist(Content(EmbeddedStore(tmp_path)))

    for name in EXAMPLES:
        if name.startswith("mnist/"):
            data = read(name).data
            assert data.train.path == f"ipfs://{cids['train']}"
            assert data.test is not None
            assert data.test.path == f"ipfs://{cids['test']}"


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"mnist/boosted_lenet4"}))
def test_examples_learn(name: str, tmp_path: Path) -> None:
    document = shrunk(name)
    shape = document["model"]["inputs"][0]["shape"]
    for feature, values in made_up(shape).items():
        np.save(tmp_path / f"{feature}.npy", values)
    training = open_training(Manifest.of(document), tmp_path)

    first = training.run(0, training.start())
    second = training.run(1, first.state)

    assert first.figures is not None
    assert second.figures is not None
    assert second.figures.loss < first.figures.loss


def test_nets_are_boosted_by_what_those_before_got_wrong(tmp_path: Path) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"))
    records = made_up([28, 28, 1])
    document = shrunk("mnist/boosted_lenet4")
    for source in document["data"].values():
        source["path"] = f"ipfs://{add_arrays(content, records).cid}"
    runs: list[Path] = []
    manifest = Manifest.of(document)
    for number in range(2):
        runs.append(tmp_path / str(number))
        content.get(ContentPath.parse(manifest.data.train.path), runs[-1])
        (runs[-1] / "manifest.json").write_bytes(manifest.canonical)
        training = open_training(manifest, runs[-1])
        outcome = training.run(1, training.run(0, training.start()).state)
        training.export(outcome.state, runs[-1] / "model.keras")
        second, manifest = manifest, boost(content, runs)

    assert second.data.train.weight == "weight"
    assert second.training.seed == document["training"]["seed"] + 1
    weight = load_arrays(content, ContentPath.parse(second.data.train.path))["weight"]
    guessed = added(runs[:1], records["image"])
    assert np.array_equal(weight, weights(guessed, records["label"]))
    wrong = guessed.argmax(axis=1) != records["label"]
    assert wrong.any()
    assert weight[wrong].mean() > weight[~wrong].mean()
    together = added(runs, records["image"]).argmax(axis=1) == records["label"]
    assert accuracy_of(content, runs) == pytest.approx(together.mean())


def test_weights_have_a_mean_of_one_and_a_limit() -> None:
    outputs = np.full((1000, 10), 0.001, np.float32)
    outputs[:, 3] = 0.991
    labels = np.full(1000, 3)
    labels[:5] = 4

    weight = weights(outputs, labels)

    assert weight.mean() == pytest.approx(1, rel=1e-5)
    assert len(set(weight[:5])) == len(set(weight[5:])) == 1
    assert 10 < weight[0] / weight[-1] <= 20


def test_missing_cifar10_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("URL fetch failure")

    monkeypatch.setattr(keras.datasets.cifar10, "load_data", fail)
    monkeypatch.setattr("sys.argv", ["prepare.py"])

    with pytest.raises(SystemExit, match=r"not here, and Keras cannot download it \(URL fetch"):
        cifar10.main()


def test_sheets_have_an_image_a_row(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (12, 32, 32, 3), np.uint8)
    for number, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        rows = images[2 * number : 2 * number + 2].reshape(2, 1024, 3)
        tf.io.write_file(str(tmp_path / f"{name}.png"), tf.io.encode_png(rows))
    (tmp_path / "train_lables.json").write_text("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]")
    (tmp_path / "test_lables.json").write_text("[3, 4]")

    train, test = cifar10.read_sheets(tmp_path)

    assert np.array_equal(train[0], images[:10])
    assert np.array_equal(test[0], images[10:])
    assert (train[1].tolist(), test[1].tolist()) == (list(range(10)), [3, 4])
    assert train[1].dtype == np.uint8


def test_other_images_are_not_taken_for_cifar10(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = np.zeros((1, 32, 32, 3), np.uint8), np.zeros((1, 1), np.uint8)
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", lambda: (one, one))
    monkeypatch.setattr("sys.argv", ["prepare.py"])
    monkeypatch.setenv("TRAINYARD_STORE", str(tmp_path))

    with pytest.raises(SystemExit, match="this is not CIFAR-10 as it was published: train is"):
        cifar10.main()
