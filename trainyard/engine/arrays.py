"""Arrays by feature: a folder of `.npy` files as `add_arrays` writes it, or one `.npz` file."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from trainyard.datasets.arrays import SUFFIX
from trainyard.engine.columns import (
    HEAD_BYTES,
    Array,
    Column,
    Header,
    missing_feature,
    reading,
    wrong_count,
)
from trainyard.engine.errors import CorruptDataError, DataError
from trainyard.protocol.manifest import Source

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_MAGIC = b"PK\x03\x04"
_ENCRYPTED = 1


def open_columns(source: Source, path: Path) -> dict[str, Column]:
    """The features that training reads, each checked against the manifest, none of them loaded."""
    if path.is_dir():
        return {name: _from_folder(source, path, name) for name in source.used}
    with _archive(path) as archive:
        return {name: _from_archive(source, path, archive, name) for name in source.used}


def load_archive(source: Source, path: Path) -> dict[str, Array]:
    """The features of an `.npz` file in memory, compressed or not, with their checksums checked."""
    arrays = {}
    with _archive(path) as archive:
        for name in source.used:
            info = _member(path, archive, name)
            with archive.open(info) as stream:
                arrays[name] = _load(source, stream, info.file_size, name, _inside(path, name))
    return arrays


def _from_folder(source: Source, folder: Path, name: str) -> Column:
    path = folder / (name + SUFFIX)
    if not path.is_file():
        names = [entry.stem for entry in folder.iterdir() if entry.suffix == SUFFIX]
        raise missing_feature(name, str(folder), names)
    return _column(source, path, 0, path.stat().st_size, name, str(path))


def _from_archive(source: Source, path: Path, archive: zipfile.ZipFile, name: str) -> Column:
    info = _member(path, archive, name)
    where = _inside(path, name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise DataError(
            f"{where} is compressed, and too large to be unpacked in memory; "
            "save it with numpy.savez, or add its arrays as a folder"
        )
    with reading(path) as file:
        head = os.pread(file, _LOCAL_HEADER.size, info.header_offset)
    if len(head) != _LOCAL_HEADER.size or not head.startswith(_LOCAL_MAGIC):
        raise CorruptDataError(f"{where} is not where the archive says")
    _, *lengths = _LOCAL_HEADER.unpack(head)
    start = info.header_offset + _LOCAL_HEADER.size + sum(lengths)
    if start + info.file_size > path.stat().st_size:
        raise CorruptDataError(f"{where} is cut short: the archive ends before it does")
    return _column(source, path, start, info.file_size, name, where)


def _column(source: Source, path: Path, start: int, size: int, name: str, where: str) -> Column:
    if not size:
        raise wrong_count(where, 0, source.records)
    with reading(path) as file:
        header = Header.parse(os.pread(file, min(size, HEAD_BYTES), start), where)
    tensor = source.features[name].tensor
    header.check(size, name, tensor, source.records, where)
    return Column(
        path,
        start + header.head_bytes,
        header.dtype,
        tensor.shape,
        source.records,
        header.is_fortran,
    )


def _load(source: Source, stream: IO[bytes], size: int, name: str, where: str) -> Array:
    if not size:
        raise wrong_count(where, 0, source.records)
    head = stream.read(HEAD_BYTES)
    header = Header.parse(head, where)
    header.check(size, name, source.features[name].tensor, source.records, where)
    data = np.empty(header.value_bytes, np.uint8)
    begun = head[header.head_bytes :]
    data[: len(begun)] = np.frombuffer(begun, np.uint8)
    done = len(begun)
    while done < len(data):
        piece = stream.read(min(len(data) - done, 1 << 20))
        if not piece:
            raise CorruptDataError(f"{where} is cut short after {done} bytes of its values")
        data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    # The checksum is compared where a member ends, so its end has to be met.
    stream.read(1)
    values = data.view(header.dtype).reshape(header.shape, order="F" if header.is_fortran else "C")
    return np.ascontiguousarray(values, header.dtype.newbyteorder("="))


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        info = archive.getinfo(name + SUFFIX)
    except KeyError:
        names = [member.removesuffix(SUFFIX) for member in archive.namelist()]
        raise missing_feature(name, str(path), names) from None
    if info.flag_bits & _ENCRYPTED:
        raise DataError(f"{_inside(path, name)} is encrypted")
    return info


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise CorruptDataError(f"{path} is no readable .npz file: {error}") from error


def _inside(path: Path, name: str) -> str:
    return f"{path}[{name}{SUFFIX}]"
