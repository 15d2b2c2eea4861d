"""Models trained by the market on what executors wrote, with checkpoints and summaries."""

import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)

from examples.spark import lenet
from tests.snippets import blocks
from tests.spark.conftest import AGENTS, World
from tests.spark.records import image_and_label, point
from trainyard.demo.mnist import INSTALLED
from trainyard.sdk.errors import NotPostedError, RefusedError
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer
from trainyard.sdk.results import manifest_of
from trainyard.spark import MaxEpoch, MaxIteration, TFDataset, TFOptimizer


@pytest.fixture(scope="module")
def dataset(world: World) -> TFDataset:
    return TFDataset.from_rdd(
        world.context.parallelize(range(64), 3).map(point),
        ["point", "side"],
        [[4], []],
        ["float32", "int64"],
        16,
        market=world.market,
    )


def small_model() -> Any:
    model = keras.Sequential(
        [
            keras.Input((4,), name="given"),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"])
    return model


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder))
    found.Reload()
    return [(one.step, one.value) for one in found.Scalars(name)]


@dataclass(frozen=True, slots=True)
class Run:
    """The example, trained."""

    optimizer: TFOptimizer
    history: Any
    folder: Path

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"


COUNT, BATCH, EPOCHS = 1_024, 64, 2
STEPS = COUNT // BATCH * EPOCHS


@pytest.fixture(scope="module")
def run(world: World, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("lenet")
    keras.utils.set_random_seed(1)
    rdd = lenet.images_and_labels(world.context, INSTALLED, "train", COUNT)
    optimizer = lenet.optimizer_for(
        rdd, BATCH, folder, world.market, steps_per_segment=8, budget="0.5 ETH", verbose=0
    )
    assert lenet.accuracy(optimizer.model, INSTALLED, 500) < 0.3
    optimizer.set_checkpoint(folder / "checkpoints")
    return Run(optimizer, optimizer.optimize(end_trigger=MaxEpoch(EPOCHS)), folder)


def test_the_page_on_spark_can_be_done_on_the_market_that_it_starts(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Up to the money: what it says is posted could be, with as many agents as it starts."""
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    code = blocks(page, "python")[0].replace("60_000", "640")
    assert f"trainyard devnet up --agents {AGENTS} " in page
    posted: list[Offer] = []

    def stop(market: Market, offer: Offer) -> int:
        posted.append(offer)
        raise NotPostedError("that is enough")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trainyard.face.connect", lambda: nullcontext(world.market))
    monkeypatch.setattr("trainyard.sdk.fitting.post", stop)
    given = {"read_image_and_label": image_and_label, "lenet": lenet.lenet}

    with pytest.raises(NotPostedError, match="that is enough"):
        exec(code, given)  # noqa: S102

    [offer] = posted
    assert offer.manifest.data.train.records == 640
    assert (offer.terms.slots, offer.terms.audits) == (1, 2)


def test_the_lenet_of_the_example_learns(world: World, run: Run) -> None:
    optimizer = run.optimizer

    assert run.history.receipt.outcome == "settled"
    assert lenet.accuracy(optimizer.model, INSTALLED, 500) > 0.6
    manifest = manifest_of(world.market, run.history.task)
    assert manifest.training.until.epochs == EPOCHS
    assert manifest.data.train.path == f"ipfs://{optimizer.dataset.cid}"
    assert manifest.training.model_dump()["optimizer"]["type"] == "Adam"
    assert optimizer.steps == STEPS


def test_the_loss_is_there_for_tensorboard(run: Run) -> None:
    told = scalars(run.folder / "lenet" / "train", "loss")

    # As the workers told it, at their steps.
    assert [step for step, _ in told] == sorted(step for step, _ in told)
    assert told[-1][0] == STEPS
    assert told[-1][1] < told[0][1]


def test_training_goes_on_from_a_checkpoint(world: World, run: Run) -> None:
    kept = [np.copy(one) for one in run.optimizer.model.get_weights()]
    model = keras.models.clone_model(run.optimizer.model)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = run.optimizer.dataset
    second = TFOptimizer(
        model,
        keras.optimizers.Adam(0.001),
        data,
        val_dataset=data,
        market=world.market,
        verbose=0,
        seed=3,
    )

    found = second.load_checkpoint(run.checkpoints)

    assert (found.steps, found.data) == (STEPS, data.cid)
    assert (found.task, found.state) == (run.history.task, run.history.receipt.state)
    for one, other in zip(second.model.get_weights(), kept, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(RefusedError, match=f"{STEPS} of {STEPS} steps are done"):
        second.optimize(end_trigger=MaxEpoch(EPOCHS))
    history = second.set_checkpoint(run.checkpoints).optimize(MaxIteration(STEPS + 4))
    training = manifest_of(world.market, history.task).training
    assert (training.until.steps, second.steps) == (4, STEPS + 4)
    assert training.validation is not None
    assert training.validation.source is not None
    assert training.validation.source.path == f"ipfs://{data.cid}"
    # Other records first than the first time.
    assert training.seed == 3 + STEPS
    names = {one.name for one in run.checkpoints.glob("*.keras")}
    assert names == {f"model.{STEPS}.keras", f"model.{STEPS + 4}.keras"}
    assert any(
        not np.array_equal(one, other)
        for one, other in zip(second.model.get_weights(), kept, strict=True)
    )


def test_the_steps_of_rounds_count_though_their_optimizer_begins_anew(
    world: World, dataset: TFDataset, tmp_path: Path
) -> None:
    optimizer = TFOptimizer(
        small_model(),
        None,
        dataset,
        market=world.market,
        workers=2,
        mode="rounds",
        verify="audit:1",
        rounds={"local_steps": 2},
        verbose=0,
    )

    history = optimizer.set_checkpoint(tmp_path).optimize(MaxEpoch(1))

    assert int(optimizer.model.optimizer.iterations) == 0
    assert (history.steps, optimizer.steps) == (4, 4)
    assert [one.name for one in tmp_path.glob("*.keras")] == ["model.4.keras"]
    with pytest.raises(RefusedError, match="4 of 4 steps are done"):
        optimizer.optimize(MaxEpoch(1))


def test_a_checkpoint_that_is_not_what_was_saved_is_refused(
    run: Run, dataset: TFDataset, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    shutil.copytree(run.checkpoints, folder)
    optimizer = run.optimizer

    with pytest.raises(RefusedError, match="is of another model than this one"):
        TFOptimizer(small_model(), None, dataset).load_checkpoint(folder)
    with pytest.raises(RefusedError, match=f"no checkpoint after 7 steps .* after {STEPS}"):
        optimizer.load_checkpoint(folder, 7)
    with pytest.raises(RefusedError, match="there is no checkpoint in"):
        optimizer.load_checkpoint(tmp_path / "nowhere")
    (folder / f"model.{STEPS}.keras").write_bytes(b"damaged")
    with pytest.raises(RefusedError, match="it is damaged"):
        optimizer.load_checkpoint(folder, STEPS)


def test_a_loss_that_no_manifest_says_is_refused_by_its_name(dataset: TFDataset) -> None:
    x, side = dataset.tensors
    logits = keras.layers.Dense(2)(x)
    ops = keras.ops

    with pytest.raises(RefusedError, match="the loss is of Tanh"):
        TFOptimizer(ops.mean(ops.tanh(logits)), "adam")
    with pytest.raises(RefusedError, match="the loss ends with SparseCategoricalCrossentropy"):
        TFOptimizer(ops.sparse_categorical_crossentropy(side, logits), "adam")
    other = keras.Input((), dtype="int64")
    with pytest.raises(RefusedError, match=r"none of dataset\.tensors"):
        TFOptimizer(ops.mean(ops.sparse_categorical_crossentropy(other, logits)), "adam")
    with pytest.raises(RefusedError, match="epochs is not said here"):
        TFOptimizer(small_model(), None, dataset, epochs=3)
    with pytest.raises(RefusedError, match="so it has to be given"):
        TFOptimizer(small_model())


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda y, z: keras.ops.mean(keras.ops.square(z - y)), "MeanSquaredError"),
        (lambda y, z: keras.ops.mean(keras.ops.abs(y - z)), "MeanAbsoluteError"),
        (lambda y, z: keras.ops.mean(keras.ops.binary_crossentropy(y, z)), "BinaryCrossentropy"),
    ],
)
def test_a_loss_becomes_the_one_of_keras(world: World, made: Any, kind: str) -> None:
    numbers = TFDataset.from_rdd(
        world.context.parallelize(range(8), 2).map(lambda n: [np.ones(4) * n, np.ones(1) * n]),
        ["x", "y"],
        [[4], [1]],
        ["float32", "float32"],
        4,
        market=world.market,
    )
    x, y = numbers.tensors

    found = TFOptimizer(made(y, keras.layers.Dense(1)(x)), "sgd")

    assert type(found.model.loss).__name__ == kind
    assert found.dataset is numbers
