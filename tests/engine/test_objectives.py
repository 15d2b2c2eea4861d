"""Every loss trains, and examples weigh what Keras' own `fit` makes of them."""

import json
from pathlib import Path
from typing import Any, get_args

import keras
import numpy as np
import pytest

from tests.engine.nets import RECORDS, manifest_of, write_data
from trainyard.engine.counting import Stop
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.manifest.objectives import Loss

WEIGHTS = {0: 0.25, 1: 3.0}
STEPS = 4
TARGETS = {
    "numbers": np.arange(RECORDS) % 3 == 0,
    "a column": (np.arange(RECORDS) % 3 == 0)[:, None],
    # Halves count as 0, for that is even; what is neither class weighs 1.
    "shares": np.tile([0.0, 0.4, 0.5, 0.6, 1.0, 1.4], RECORDS // 6),
}
DTYPES = {"numbers": "int64", "a column": "uint8", "shares": "float32"}


def binary(target: str, **changes: Any) -> Manifest:
    """One output, and every batch is all records: so their order is as good as none."""
    changes = {"loss": {"type": "BinaryCrossentropy", "from_logits": True}, **changes}
    document = json.loads(manifest_of("mlp").canonical)
    document["model"]["layers"][-1]["units"] = 1
    document["data"]["train"]["features"]["label"] = {
        "dtype": DTYPES[target],
        "shape": list(TARGETS[target].shape[1:]),
    }
    document["training"] |= {
        "batch": RECORDS,
        "until": {"steps": STEPS},
        "steps_per_segment": STEPS,
        "optimizer": {"type": "SGD", "learning_rate": 0.1},
        "metrics": [{"type": "BinaryAccuracy", "name": "accuracy", "threshold": 0}],
        "class_weight": {str(label): weight for label, weight in WEIGHTS.items()},
        **changes,
    }
    return Manifest.of(document)


def with_weights(manifest: Manifest) -> Manifest:
    """Records that weigh something, and not their classes: Keras takes one or the other."""
    document = json.loads(manifest.canonical)
    del document["training"]["class_weight"]
    train = document["data"]["train"]
    train["features"]["weight"] = {"dtype": "float32", "shape": []}
    train["weight"] = "weight"
    return Manifest.of(document)


RECORD_WEIGHTS = (np.arange(RECORDS) % 5 / 2 + 0.25).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True], ids=["classes", "records"])
@pytest.mark.parametrize("target", TARGETS)
def test_examples_weigh_what_keras_makes_of_them(
    target: str, weighted: bool, tmp_path: Path
) -> None:
    manifest = with_weights(binary(target)) if weighted else binary(target)
    program = build(manifest)
    labels = TARGETS[target].astype(DTYPES[target])
    write_data(tmp_path)
    np.save(tmp_path / "label.npy", labels)
    np.save(tmp_path / "weight.npy", RECORD_WEIGHTS)
    source = manifest.data.train
    training = Training(manifest, program, Material(open_folder(source, tmp_path)))
    theirs = keras.models.clone_model(program.model)
    theirs.set_weights(program.model.get_weights())
    theirs.compile(
        keras.optimizers.SGD(0.1),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(name="accuracy", threshold=0)],
    )

    after = training.run(0, training.start()).state
    told = theirs.fit(
        np.load(tmp_path / "image.npy"),
        labels,
        batch_size=RECORDS,
        epochs=STEPS,
        shuffle=False,
        class_weight=None if weighted else WEIGHTS,
        sample_weight=RECORD_WEIGHTS if weighted else None,
        verbose=0,
    )

    kernel = next(one for one in theirs.variables if one.path.endswith("out/kernel"))
    ours = after.tensors["weights/out/kernel"]
    np.testing.assert_allclose(ours, np.asarray(kernel), rtol=1e-4, atol=1e-6)
    start = training.start().tensors["weights/out/kernel"]
    assert np.abs(ours - start).max() > 1e-3
    figures = training.run(0, training.start()).figures
    assert figures is not None
    assert figures.loss == pytest.approx(np.mean(told.history["loss"]), rel=1e-4)
    # What is measured has no weight, there as here.
    assert figures.metrics == {
        "accuracy": pytest.approx(np.mean(told.history["accuracy"]), rel=1e-4)
    }


def test_shares_weigh_by_the_class_that_is_nearest() -> None:
    program = build(binary("shares"))

    found = program.weigh(TARGETS["shares"][:6], np.ones(6, np.float32))

    np.testing.assert_array_equal(found, [0.25, 0.25, 0.25, 3, 3, 3])
    np.testing.assert_array_equal(program.weigh(np.array([2.0]), np.ones(1, np.float32)), [1])


LOSSES = [get_args(one.model_fields["type"].annotation)[0] for one in get_args(get_args(Loss)[0])]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_trains_a_model(loss: str, tmp_path: Path) -> None:
    """With as many outputs as there are classes, and targets of the form that it asks for."""
    write_data(tmp_path)
    document = json.loads(manifest_of("mlp", until={"steps": 24}).canonical)
    document["model"]["layers"][-1]["activation"] = "softmax"
    document["training"] |= {"loss": {"type": loss}, "metrics": []}
    if not loss.startswith("Sparse"):
        labels = np.load(tmp_path / "label.npy")
        np.save(tmp_path / "label.npy", np.eye(10, dtype=np.float32)[labels])
        document["data"]["train"]["features"]["label"] = {"dtype": "float32", "shape": [10]}
    manifest = Manifest.of(document)
    data = open_folder(manifest.data.train, tmp_path)
    training = Training(manifest, build(manifest), Material(data))

    state, losses = training.start(), []
    for segment in range(manifest.plan.segments):
        outcome = training.run(segment, state)
        state = outcome.state
        assert outcome.stop is Stop.NO
        assert outcome.figures is not None
        losses.append(outcome.figures.loss)

    assert losses[-1] < losses[0]
