"""A training state as canonical bytes, so that one state has one hash.

The bytes are a safetensors file that any reader opens, with all freedom taken out: tensors in the
order of their names and without gaps, the header in canonical JSON and filled up to eight bytes.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import rfc8785

from trainyard.engine.errors import RunError, StateError
from trainyard.engine.plain_files import open_plain, written

# Whose tensors they are: the model's, its optimiser's, and that of the merges of rounds.
WEIGHTS, OPTIMIZER, OUTER = "weights/", "optimizer/", "outer/"
# What a model makes of records, one row for each, in a run that predicts.
PREDICTIONS = "predictions"

_FORMAT = "trainyard-state/1"
_METADATA = "__metadata__"
_MAX_HEADER_BYTES = 16 << 20
_DTYPES = {
    "BOOL": "bool",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
}
_NAMES = {np.dtype(numpy_name): name for name, numpy_name in _DTYPES.items()}

Tensor = npt.NDArray[Any]


def is_of(name: str, layers: Iterable[str]) -> bool:
    """Whether a tensor is a weight of one of these layers."""
    return any(name.startswith(f"{WEIGHTS}{layer}/") for layer in layers)


class State:
    """Named tensors: all that the rest of a run depends on, but the manifest."""

    def __init__(self, tensors: Mapping[str, Tensor | np.generic]) -> None:
        # Not ascontiguousarray, which makes a vector of a scalar.
        self.tensors = {name: np.asarray(tensors[name], order="C") for name in sorted(tensors)}
        self._header = _header(self.tensors)
        self._hash: bytes | None = None

    @property
    def size(self) -> int:
        return len(self._header) + sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def hash(self) -> bytes:
        """The sha-256 digest of the canonical bytes."""
        if self._hash is None:
            digest = hashlib.sha256()
            for part in self.parts():
                digest.update(part)
            self._hash = digest.digest()
        return self._hash

    def parts(self) -> Iterator[bytes | memoryview]:
        """The canonical bytes, without a copy of the tensors."""
        yield self._header
        for tensor in self.tensors.values():
            if tensor.nbytes:
                yield tensor.reshape(-1).view(np.uint8).data

    def save(self, path: Path) -> None:
        """Write the canonical bytes: `path` then has all of them, or is as it was."""
        try:
            with written(path) as file:
                # All at once: a disk without the room says so now, and has less to do.
                os.posix_fallocate(file.fileno(), 0, self.size)
                for part in self.parts():
                    file.write(part)
        except OSError as error:
            raise StateError(f"cannot write the state {path}: {error.strerror}") from error
        except RunError as error:
            raise StateError(f"cannot write the state {path}: {error}") from error

    @classmethod
    def load(cls, path: Path) -> "State":
        try:
            with open_plain(path) as file:
                data = file.read()
        except OSError as error:
            raise StateError(f"cannot read the state {path}: {error.strerror}") from error
        except RunError as error:
            raise StateError(f"cannot read the state: {error}") from error
        return cls.decode(data, str(path))

    @classmethod
    def decode(cls, data: bytes, where: str) -> "State":
        """The state of these bytes, which must be the canonical ones."""
        header, start = _read_header(data, where)
        tensors: dict[str, Tensor] = {}
        for name, spec in header.items():
            tensors[name] = _tensor(data, start, name, spec, where)
        try:
            state = cls(tensors)
        except ValueError as error:
            raise StateError(f"{where} has a name or a size that no state has") from error
        if state.size != len(data) or state._header != data[:start]:
            raise StateError(f"{where} is a safetensors file, but not in the one form of a state")
        return state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)


def differing(one: State, other: State) -> list[str]:
    """The names of the tensors in which two states differ."""
    names = sorted(one.tensors.keys() | other.tensors.keys())
    return [name for name in names if not _same(one.tensors.get(name), other.tensors.get(name))]


def check_form(state: State, form: Mapping[str, Tensor], prefix: str = "") -> None:
    """Refuse a state whose tensors under `prefix` are not those of `form`: names, shapes, kinds.

    INVARIANT: no number of a stranger's state is read before this was asked, for it may be a list.
    """
    wanted = {name: tensor for name, tensor in form.items() if name.startswith(prefix)}
    for name, tensor in wanted.items():
        found = state.tensors.get(name)
        if found is None:
            raise StateError(f"the state has no {name}: it is of another model")
        if (found.shape, found.dtype) != (tensor.shape, tensor.dtype):
            raise StateError(
                f"{name} of the state is {found.dtype} {list(found.shape)}, and of this model "
                f"{tensor.dtype} {list(tensor.shape)}"
            )
    for name in state.tensors:
        if name.startswith(prefix) and name not in wanted:
            raise StateError(f"the state has {name}, which no state of this run has")


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return False
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise StateError(f"tensor {name} has dtype {tensor.dtype}, which a state cannot hold")
    return _layout(
        tuple(
            (name, _NAMES[tensor.dtype], tensor.shape, tensor.nbytes)
            for name, tensor in tensors.items()
        )
    )


# All states of a run are laid out alike, and canonical JSON takes as long as copying a small one.
@lru_cache(maxsize=8)
def _layout(tensors: tuple[tuple[str, str, tuple[int, ...], int], ...]) -> bytes:
    specs: dict[str, Any] = {_METADATA: {"format": _FORMAT}}
    end = 0
    for name, dtype, shape, size in tensors:
        begin, end = end, end + size
        specs[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = rfc8785.dumps(specs)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _read_header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MAX_HEADER_BYTES):
        raise StateError(f"{where} is cut off or is no state")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header.pop(_METADATA)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{where} has no readable header") from error
    if metadata != {"format": _FORMAT}:
        raise StateError(f"{where} is not of the format {_FORMAT}")
    return header, 8 + length


def _tensor(data: bytes, start: int, name: str, spec: Any, where: str) -> Tensor:
    try:
        dtype = np.dtype(_DTYPES[spec["dtype"]])
        begin, end = spec["data_offsets"]
        shape = tuple(spec["shape"])
        if not 0 <= begin <= end <= len(data) - start:
            raise ValueError("its offsets are outside of the file")
        flat = np.frombuffer(memoryview(data)[start + begin : start + end], dtype=dtype)
        return flat.reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"tensor {name!r} of {where} is malformed: {error}") from error
