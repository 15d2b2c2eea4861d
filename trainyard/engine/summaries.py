"""A run as TensorBoard shows it. TensorFlow is not needed: whoever leads rounds does without it.

An event file is a TFRecord file of `Event` messages, of which four fields are used here.
"""

import itertools
import math
import os
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainyard.datasets.tfrecord import frame
from trainyard.engine.journal import Entry, Measured

SUMMARIES = "tensorboard"
_numbers = itertools.count()


class Summaries:
    """Scalars of each segment and evaluation, by step. A run that goes on adds to them.

    Every start has a file of its own, from its first figure on.
    """

    def __init__(self, folder: Path) -> None:
        number = f"{int(time.time()):010}.{os.getpid()}.{next(_numbers)}"
        self._path = folder / f"events.out.tfevents.{number}.trainyard"

    def write(self, entry: Entry) -> None:
        self.add(_scalars(entry))

    def add(self, scalars: Iterable[tuple[int, str, float]]) -> None:
        """Step, name and value of each."""
        data = b"".join(frame(_scalar(*one)) for one in scalars)
        if not data:
            return
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            data = frame(_event(0, _bytes(3, b"brain.Event:2"))) + data
        # Opened each time: nobody has to close it, and what is written is there for all to see.
        with self._path.open("ab") as file:
            file.write(data)


def _scalars(entry: Entry) -> Iterator[tuple[int, str, float]]:
    """Step, name and value of all that is shown of an entry."""
    if entry.trained is not None:
        pace = entry.trained.examples / entry.train_s if entry.train_s else 0.0
        yield from _figures(entry.step, "", entry.trained)
        yield entry.step, "examples_per_s", pace
    if entry.energy is not None:
        yield entry.step, "energy_j_estimated", entry.energy.joules
    for one in entry.validated:
        yield from _figures(one.step + 1, "val_", one)


def _figures(step: int, prefix: str, measured: Measured) -> Iterator[tuple[int, str, float]]:
    for name, value in {"loss": measured.loss, **measured.metrics}.items():
        yield step, prefix + name, value


def _scalar(step: int, name: str, value: float) -> bytes:
    return _event(step, _bytes(5, _bytes(1, _bytes(1, name.encode()) + b"\x15" + _float(value))))


def _event(step: int, what: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + what


def _float(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _bytes(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
