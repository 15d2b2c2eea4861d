"""Data sets and generators to predict for, as arrays on disk that keep their order.

To train, records are dealt to shards; whoever predicts wants each answer where its question was.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from trainyard.datasets.records import NumpyIterable
from trainyard.protocol.manifest.model import Input
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.records import INFINITE, Array, array_of, inputs_in, is_batch_of


def spooled(
    inputs: Sequence[Input], x: Any, folder: Path, *, measures: bool = False
) -> tuple[dict[str, Array], Array | None]:
    """The inputs as arrays in `folder`, and the targets, where the elements have some.

    In one pass: a data set that is shuffled has another order in the next one. Who `measures` by
    targets would need weights too, and is refused what has some; who predicts needs neither.
    """
    targets: list[Array] = []
    count, is_batch = 0, False
    with ExitStack() as parts:
        files = [
            parts.enter_context((folder / f"{number}.spooled").open("wb"))
            for number in range(len(inputs))
        ]
        for number, element in enumerate(_elements(x)):
            given, target = _parted(element, measures=measures)
            if number == 0:
                is_batch = is_batch_of(inputs, [given])
            values = inputs_in(inputs, given, is_batch=is_batch)
            for file, one in zip(files, values, strict=True):
                file.write(np.ascontiguousarray(one).tobytes())
            count += len(values[0]) if is_batch else 1
            if target is not None:
                targets.append(array_of(target, "x: the targets"))
    if not count:
        raise RefusedError("x: there are no records in it")
    arrays: dict[str, Array] = {
        one.name: np.memmap(
            folder / f"{number}.spooled", dtype=one.dtype, mode="r", shape=(count, *one.shape)
        )
        for number, one in enumerate(inputs)
    }
    if not targets:
        return arrays, None
    return arrays, np.concatenate(targets) if is_batch else np.stack(targets)


def _parted(element: Any, *, measures: bool) -> tuple[Any, Any]:
    """Inputs and target: a tuple has both, as Keras takes it, and all else is inputs."""
    if not isinstance(element, tuple):
        return element, None
    if not 1 <= len(element) <= 3:
        raise RefusedError("x: each of its elements has to be inputs, or (inputs, targets)")
    if measures and len(element) == 3:
        raise RefusedError(
            "x: its elements bring weights along, by which nothing is measured here: leave them "
            "out, as dataset.map(lambda x, y, weight: (x, y)) does"
        )
    return element[0], element[1] if len(element) > 1 else None


def _elements(x: Any) -> Iterable[Any]:
    if isinstance(x, NumpyIterable):
        cardinality: Any = getattr(x, "cardinality", None)
        if cardinality is not None and int(cardinality()) == INFINITE:
            raise RefusedError("x: the data set has no end; cut it with dataset.take(count)")
        return x.as_numpy_iterator()
    if hasattr(x, "__getitem__") and hasattr(x, "__len__"):
        return (x[number] for number in range(len(x)))
    if hasattr(x, "__iter__") and hasattr(x, "__len__"):
        batches: Iterable[Any] = x
        return batches
    if isinstance(x, Iterator):
        raise RefusedError(
            "x is a generator without a length, of which nobody knows where it ends: make it a "
            "keras.utils.PyDataset, or a tf.data.Dataset with .take(count)"
        )
    raise RefusedError(f"x: {type(x).__name__} is neither arrays, nor a data set, nor a CID")
