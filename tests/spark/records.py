"""Records that executors make. Apart from the tests: executors import this and no more."""

from typing import Any

import numpy as np

NAMES, SHAPES, TYPES = ["x", "y"], [[3], []], ["float32", "int64"]


def record(number: int) -> list[Any]:
    return [np.full(3, number, np.float32), number]


def point(number: int) -> dict[str, Any]:
    """A point, and on which side of a line it lies."""
    x = np.random.default_rng(number).normal(size=4).astype(np.float32)
    return {"point": x, "side": int(x.sum() > 0)}


def image_and_label(number: int) -> list[Any]:
    """A grey image of MNIST's size, and a label."""
    return [np.full((28, 28, 1), number % 256 / 255, np.float32), np.array([number % 10], np.int32)]
