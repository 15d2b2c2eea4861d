"""Records from wherever they come: arrays, any iterable of mappings, or a `tf.data.Dataset`."""

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

import numpy.typing as npt

from trainyard.datasets.errors import DatasetError, MismatchError
from trainyard.datasets.schema import Record, Schema

_INFINITE = -1


@runtime_checkable
class NumpyIterable(Protocol):
    """What we need of a `tf.data.Dataset`; its package is not imported for that."""

    def as_numpy_iterator(self) -> Iterator[Any]: ...


class Recorded(Protocol):
    """Records that can be asked for in any order, each as the bytes of an Example."""

    schema: Schema

    def __len__(self) -> int: ...

    def encoded(self, number: int) -> bytes: ...


def records_of(dataset: NumpyIterable, names: Sequence[str] | None = None) -> Iterator[Record]:
    """The elements of a `tf.data.Dataset` as records.

    Elements that are mappings keep their names. Tuples take `names`, or "x" and "y" where there are
    two and none are given; single tensors take the one name, or "x".
    """
    cardinality = getattr(dataset, "cardinality", None)
    if cardinality is not None and int(cardinality()) == _INFINITE:
        raise DatasetError("the data set has no end; cut it with dataset.take(count)")
    for element in dataset.as_numpy_iterator():
        if isinstance(element, Mapping):
            yield element
            continue
        values = element if isinstance(element, tuple) else (element,)
        named = tuple(names) if names is not None else ("x", "y")[: len(values)]
        if len(named) != len(values):
            raise DatasetError(f"{len(values)} values in a record need as many names, not {named}")
        yield dict(zip(named, values, strict=True))


@contextmanager
def recorded(
    source: Mapping[str, npt.NDArray[Any]] | Iterable[Record] | NumpyIterable,
    scratch: Path | None = None,
) -> Iterator[Recorded]:
    """`source`, ready to be asked for any record.

    Arrays are asked as they are, also memory-mapped ones. Other sources are read once and spooled
    to a file in `scratch` that goes away in the end: memory holds eight bytes a record.
    """
    if isinstance(source, Mapping):
        yield _Columns(source)
        return
    records = records_of(source) if isinstance(source, NumpyIterable) else source
    with tempfile.TemporaryFile(dir=scratch, prefix="trainyard-records-") as file:
        yield _Spooled(records, file)


class _Columns:
    """Arrays whose first axis counts the records."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        lengths = {
            name: values.shape[0] if values.ndim else None for name, values in arrays.items()
        }
        if len(set(lengths.values())) != 1 or None in lengths.values():
            raise MismatchError(
                f"arrays need a first axis of one length, that of the records; these have {lengths}"
            )
        self._arrays = arrays
        self._length = next(iter(lengths.values())) or 0
        if not self._length:
            raise DatasetError("there are no records; give at least one")
        self.schema = Schema.of({name: values[0] for name, values in arrays.items()})

    def __len__(self) -> int:
        return self._length

    def encoded(self, number: int) -> bytes:
        return self.schema.encode(
            {name: values[number] for name, values in self._arrays.items()}, number
        )


class _Spooled:
    """Records that came in order and are needed in another."""

    def __init__(self, records: Iterable[Record], file: IO[bytes]) -> None:
        self._file = file
        self._ends = array("Q", [0])
        schema: Schema | None = None
        for number, record in enumerate(records):
            schema = schema or Schema.of(record)
            file.write(encoded := schema.encode(record, number))
            self._ends.append(self._ends[-1] + len(encoded))
        if schema is None:
            raise DatasetError("there are no records; give at least one")
        self.schema = schema

    def __len__(self) -> int:
        return len(self._ends) - 1

    def encoded(self, number: int) -> bytes:
        start, end = self._ends[number], self._ends[number + 1]
        self._file.seek(start)
        return self._file.read(end - start)
