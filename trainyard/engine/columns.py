"""One feature of all records as an array in a file, read row by row.

Rows are read rather than mapped: a file that gets shorter meanwhile is then an error, where a
mapping would end the process, and memory holds no more than what was asked for.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError
from trainyard.engine.order import Numbers
from trainyard.protocol.manifest.values import Tensor

Array: TypeAlias = npt.NDArray[Any]

# NumPy itself reads no longer headers than 10,000 characters.
HEAD_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the values of an array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    head_bytes: int

    @classmethod
    def parse(cls, head: bytes, where: str) -> "Header":
        """From the first `HEAD_BYTES` of a file. Nothing is unpickled: a header is a literal."""
        stream = io.BytesIO(head)
        try:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            elif version == (2, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
            else:
                raise ValueError(f"its format has version {version}")
        except ValueError as error:
            raise CorruptDataError(f"{where} is no array: {error}") from error
        # In one dimension both orders are one.
        return cls(dtype, shape, bool(fortran) and len(shape) > 1, stream.tell())

    @property
    def value_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def check(self, size: int, name: str, tensor: Tensor, records: int, where: str) -> None:
        """Raise unless the file, of `size` bytes, holds just what the manifest says."""
        if self.dtype.hasobject:
            raise DataMismatchError(f"{where} holds Python objects, which are not read")
        if not self.shape:
            raise DataMismatchError(f"{where} is a single value, with no axis that counts records")
        found = f"{self.dtype.newbyteorder('=').name}{list(self.shape[1:])}"
        if found != str(tensor):
            raise DataMismatchError(
                f"{where}: feature {name!r} is {found} where the manifest says {tensor}"
            )
        if self.shape[0] != records:
            raise wrong_count(where, self.shape[0], records)
        if size != self.head_bytes + self.value_bytes:
            what = "is cut short" if size < self.head_bytes + self.value_bytes else "is too long"
            raise CorruptDataError(
                f"{where} {what}: it has {size} bytes where {self.head_bytes + self.value_bytes} "
                "belong to its array"
            )


@dataclass(frozen=True, slots=True)
class Column:
    """An array that stands in a file, from byte `start` on: `records` rows of one shape."""

    path: Path
    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    records: int
    is_fortran: bool = False

    def load(self) -> Array:
        """The whole array, in C order and this machine's byte order."""
        values = np.empty(self.records * prod(self.shape), self.dtype)
        with reading(self.path) as file:
            self._fill(file, values.view(np.uint8).data, self.start)
        whole = values.reshape((self.records, *self.shape), order="F" if self.is_fortran else "C")
        return np.ascontiguousarray(whole, self.dtype.newbyteorder("="))

    def rows(self, numbers: Numbers) -> Array:
        """The rows in the order asked for, in this machine's byte order. C order alone has rows."""
        values = np.empty((len(numbers), *self.shape), self.dtype)
        width = self._width
        data = values.reshape(-1).view(np.uint8).data
        starts = (numbers * width + self.start).tolist()
        with reading(self.path) as file:
            if len(starts) > 1 and np.all(np.diff(numbers) == 1):
                self._fill(file, data, starts[0])
            else:
                for start in starts:
                    # All at once, for a disk is much quicker when it is asked for many.
                    os.posix_fadvise(file, start, width, os.POSIX_FADV_WILLNEED)
                for place, start in enumerate(starts):
                    self._fill(file, data[place * width : (place + 1) * width], start)
        return values.astype(self.dtype.newbyteorder("="), copy=False)

    def _fill(self, file: int, data: memoryview, start: int) -> None:
        done = 0
        while done < len(data):
            count = os.preadv(file, [data[done:]], start + done)
            if not count:
                raise CorruptDataError(
                    f"{self.path} is cut short: it ends at byte {start + done}, inside of record "
                    f"{(start + done - self.start) // self._width}"
                )
            done += count

    @property
    def _width(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@contextmanager
def reading(path: Path) -> Iterator[int]:
    """The file's descriptor, for `pread`: many threads may then read at once."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"cannot open {path}: {error.strerror}") from error
    try:
        yield file
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(file)


def wrong_count(where: str, found: int, stated: int) -> DataMismatchError:
    if not found:
        return DataMismatchError(f"{where} is empty where the manifest says {stated} records")
    return DataMismatchError(f"{where} has {found} records where the manifest says {stated}")


def missing_feature(name: str, where: str, found: list[str]) -> DataMismatchError:
    there = ", ".join(sorted(found)[:20]) or "nothing"
    return DataMismatchError(f"feature {name!r} is missing in {where}, which has {there}")
