"""The records of a manifest's source, by number, each checked against what the manifest says.

A set that fits into memory is loaded whole; a larger one is read record by record from files on
this machine's disk. Both kinds of source give the same batches for the same records.
"""

from collections.abc import Generator, Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from trainyard.content.content import Content, Report
from trainyard.content.limits import GIB
from trainyard.engine.arrays import load_archive, open_columns
from trainyard.engine.columns import Array, Column
from trainyard.engine.errors import DataError
from trainyard.engine.order import Numbers
from trainyard.engine.prefetching import read_ahead
from trainyard.engine.shards import ShardRows
from trainyard.engine.sources import fetch_source
from trainyard.protocol.manifest import Source

Batch: TypeAlias = dict[str, Array]


class _Rows(Protocol):
    def rows(self, numbers: Numbers) -> Batch: ...


class Data:
    """Records by number. Safe to use from many threads."""

    def __init__(self, records: int, rows: _Rows, *, in_memory: bool) -> None:
        self._records, self._rows = records, rows
        self.in_memory = in_memory

    def __len__(self) -> int:
        return self._records

    def batch(self, numbers: Numbers) -> Batch:
        """The features of the records that `numbers` names, in that order, ready to be changed."""
        if len(numbers) and not 0 <= (low := numbers.min()) <= (high := numbers.max()) < len(self):
            raise IndexError(f"record {low if low < 0 else high} of {len(self)}")
        return self._rows.rows(numbers)


def open_data(
    source: Source,
    content: Content,
    scratch: Path,
    *,
    memory_bytes: int = GIB,
    progress: Report | None = None,
) -> Data:
    """The source's records by its content address, through a verified copy below `scratch`."""
    path = fetch_source(source, content, scratch, progress=progress)
    return open_folder(source, path, memory_bytes=memory_bytes)


def open_folder(source: Source, path: Path, *, memory_bytes: int = GIB) -> Data:
    """The source's records from `path` on this machine: a folder, or an `.npz` file.

    Whoever opens it vouches that it is what the source's address names.
    """
    fits = source.records * _record_bytes(source) <= memory_bytes
    return Data(source.records, _open(source, path, whole=fits), in_memory=fits)


def prefetch(
    data: Data, numbers: Iterable[Numbers], depth: int = 2
) -> Generator[Batch, None, None]:
    """The batches of `numbers` in order, up to `depth` of them read ahead by a thread.

    The thread ends with the iterator, also when that is closed or dropped half-way.
    """
    if depth < 1:
        raise ValueError(f"at least one batch is read ahead, not {depth}")
    return read_ahead(data.batch, numbers, depth)


def _open(source: Source, path: Path, *, whole: bool) -> _Rows:
    if not path.exists():
        raise DataError(f"there is no data at {path}")
    if source.kind == "tfrecord":
        shards = ShardRows(source, path)
        return _Loaded(shards.load()) if whole else shards
    if whole and not path.is_dir():
        return _Loaded(load_archive(source, path))
    columns = open_columns(source, path)
    if whole:
        return _Loaded({name: column.load() for name, column in columns.items()})
    return _Columns(columns)


class _Loaded:
    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays

    def rows(self, numbers: Numbers) -> Batch:
        return {name: values.take(numbers, axis=0) for name, values in self._arrays.items()}


class _Columns:
    def __init__(self, columns: Mapping[str, Column]) -> None:
        for name, column in columns.items():
            if column.is_fortran:
                raise DataError(
                    f"{column.path}: feature {name!r} is too large for memory and its records do "
                    "not stand in one piece each; save it in C order"
                )
        self._columns = columns

    def rows(self, numbers: Numbers) -> Batch:
        return {name: column.rows(numbers) for name, column in self._columns.items()}


def _record_bytes(source: Source) -> int:
    tensors = [source.features[name].tensor for name in source.used]
    return sum(prod(tensor.shape) * np.dtype(tensor.dtype).itemsize for tensor in tensors)
