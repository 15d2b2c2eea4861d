"""Lengths of what a window leaves when it slides along an axis."""

from typing import Literal, TypeAlias

Padding: TypeAlias = Literal["valid", "same"]


def convolved(
    length: int, kernel: int, stride: int, dilation: int, padding: Padding | Literal["causal"]
) -> int:
    # Causal pads exactly what the kernel takes away, all of it on the left.
    if padding != "valid":
        return -(-length // stride)
    return (length - dilation * (kernel - 1) - 1) // stride + 1


def pooled(length: int, pool: int, stride: int, padding: Padding) -> int:
    return convolved(length, pool, stride, 1, padding)
