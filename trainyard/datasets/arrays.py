"""Arrays as a directory of `.npy` files: equal arrays have equal CIDs."""

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import Chunker
from trainyard.content.content import Content, Progress, Report
from trainyard.content.names import ContentPath, check_name
from trainyard.content.nodes import Built
from trainyard.content.reading import EntryKind
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.streams import stream_of

SUFFIX = ".npy"


def add_arrays(
    content: Content,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    chunker: Chunker | None = None,
    pin: bool = True,
    progress: Report | None = None,
) -> Built:
    """Store each array as `<name>.npy`, in C order and little-endian.

    Memory-mapped arrays in that layout are streamed; others are copied once, one at a time.
    """
    if not arrays:
        raise DatasetError("there are no arrays; give at least one by name")
    total = sum(values.nbytes for values in arrays.values())
    advance = counting(progress, total)
    with content.store.batch() as batch:
        files = [
            (
                check_name(name + SUFFIX),
                build_file(stream_of(_npy(name, arrays[name])), batch.put, chunker, advance),
            )
            for name in sorted(arrays)
        ]
        built = build_directory(files, batch.put)
        if pin:
            batch.pin(built.cid)
    return built


def load_arrays(content: Content, path: ContentPath) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a directory of `.npy` files, verified; other files in it are left alone."""
    arrays = {}
    for entry in content.ls(path):
        if entry.kind is not EntryKind.FILE or not entry.name.endswith(SUFFIX):
            continue
        with content.open(ContentPath(entry.cid)) as file:
            try:
                # Without pickles: reading an array must not run what a stranger wrote.
                array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            except ValueError as error:
                raise DatasetError(f"{path}/{entry.name} is no array: {error}") from error
        arrays[entry.name.removesuffix(SUFFIX)] = array
    if not arrays:
        raise DatasetError(f"{path} has no {SUFFIX} files in it")
    return arrays


def counting(progress: Report | None, total: int | None) -> Callable[[int], None] | None:
    """What `build_file` calls with each count of bytes, to tell `progress` their sum."""
    if progress is None:
        return None
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(Progress(done, total, "this machine"))

    return advance


def _npy(name: str, values: npt.NDArray[Any]) -> Iterator[bytes | memoryview]:
    if values.dtype.hasobject:
        raise DatasetError(
            f"{name!r} holds Python objects, which no array file should; "
            "convert it to numbers or to fixed-length strings"
        )
    stored = np.asarray(values, dtype=values.dtype.newbyteorder("<"), order="C")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(stored))
    yield header.getvalue()
    if stored.size:
        yield stored.reshape(-1).view(np.uint8).data
