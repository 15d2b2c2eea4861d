"""Arrays as a directory of `.npy` files: equal arrays have equal CIDs."""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import Chunker
from trainyard.content.content import Content, Progress, Report
from trainyard.content.names import ContentPath, check_name
from trainyard.content.nodes import Built
from trainyard.content.reading import Entry, EntryKind
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.streams import stream_of

SUFFIX = ".npy"
# What is loaded at once, unless the caller says otherwise.
MOST_ARRAY_BYTES = 4 << 30


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


def load_arrays(
    content: Content, path: ContentPath, *, most_bytes: int = MOST_ARRAY_BYTES
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a directory of `.npy` files, verified; other files in it are left alone.

    A few blocks that stand in a file again and again can make it as large as they like to say, so
    more than `most_bytes` together are refused before memory is taken for them.
    """
    files = [
        entry
        for entry in content.ls(path)
        if entry.kind is EntryKind.FILE and entry.name.endswith(SUFFIX)
    ]
    if not files:
        raise DatasetError(f"{path} has no {SUFFIX} files in it")
    total = sum(entry.size for entry in files)
    if total > most_bytes:
        raise DatasetError(
            f"the arrays of {path} take {total} bytes; {most_bytes} are loaded at most, "
            "give `most_bytes` for more"
        )
    return {entry.name.removesuffix(SUFFIX): _load(content, path, entry) for entry in files}


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


def _load(content: Content, path: ContentPath, entry: Entry) -> npt.NDArray[Any]:
    with content.open(ContentPath(entry.cid)) as file:
        try:
            _check_size(file, entry.size)
            # Without pickles: reading an array must not run what a stranger wrote.
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        except ValueError as error:
            raise DatasetError(f"{path}/{entry.name} is no array: {error}") from error
    return array


def _check_size(file: BinaryIO, size: int) -> None:
    """ValueError where the header's shape needs more bytes than follow it.

    NumPy takes memory for the whole shape before it reads the first of them.
    """
    version = np.lib.format.read_magic(file)
    # The third version differs from the second in how fields are named, and in no size.
    read_header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, _, dtype = read_header(file)
    except (SyntaxError, TokenError, RecursionError, MemoryError) as error:
        # It is read as an expression of Python's, which may be nested without sense.
        raise ValueError("its header cannot be read") from error
    stated, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if not dtype.hasobject and stated > there:
        raise ValueError(f"its shape {list(shape)} needs {stated} bytes, and {there} are there")
    file.seek(0)


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
