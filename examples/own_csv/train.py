"""Train on a CSV file of your own: read it, scale it, fit it on the market, try what came back.

    .venv/bin/trainyard devnet up --agents 3
    .venv/bin/python -m examples.own_csv.train                          # houses.csv, beside this
    .venv/bin/python -m examples.own_csv.train mine.csv --target price  # yours, of numbers

One column is the number to be foretold, the others are what it is foretold from.
"""

import csv
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt

import trainyard

HOUSES = Path(__file__).with_name("houses.csv")
# Of so many rows one is kept back, to try the result on.
TEST_EVERY = 5

Floats: TypeAlias = npt.NDArray[np.float32]


def main() -> None:
    arguments = parse_arguments()
    x, y = read(arguments.file, arguments.target)
    is_test = np.arange(len(y)) % TEST_EVERY == 0
    # Scales are learned from what is trained on, and from nothing else.
    middle, spread = y[~is_test].mean(), y[~is_test].std()
    model = network(x[~is_test])

    history = trainyard.fit(
        model,
        x[~is_test],
        (y[~is_test] - middle) / spread,
        epochs=20 if arguments.small else 60,
        batch_size=32,
        budget=arguments.budget,
    )
    print(f"task {history.task} is settled; {history.receipt.escrow_wei} wei were locked")

    foretold = model.predict(x[is_test], verbose=0)[:, 0] * spread + middle
    off, guessed = abs(foretold - y[is_test]).mean(), abs(middle - y[is_test]).mean()
    print(f"{arguments.target} is off by {off:,.0f}; the mean of all would be by {guessed:,.0f}")


def read(path: Path, target: str) -> tuple[Floats, Floats]:
    """All columns but the target's, and the target's."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    if target not in header:
        raise SystemExit(f"{path} has no column {target!r}: name one of {', '.join(header)}")
    try:
        values = np.array(rows, np.float32)
    except ValueError as error:
        raise SystemExit(f"{path}: every row needs a number in each column ({error})") from error
    place = header.index(target)
    return np.delete(values, place, axis=1), values[:, place]


def network(x: Floats) -> Any:
    scale = keras.layers.Normalization()
    # Part of the model: whoever has it later gives it rows as they are in the file.
    scale.adapt(x)
    model = keras.Sequential(
        [
            keras.Input((x.shape[1],)),
            scale,
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mean_squared_error")
    return model


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, nargs="?", default=HOUSES)
    parser.add_argument("--target", default="price", help="the column to be foretold")
    parser.add_argument("--budget", default="0.5 ETH", help="the most that may be locked")
    parser.add_argument("--small", action="store_true", help="a third of the epochs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
