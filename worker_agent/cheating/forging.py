"""Manifests, records and runs that are not what they say."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.engine.journal import Journal, write_whole
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest import Manifest

_FASTER = 3.0
_GARBAGE_BYTES = 512


def other_rate(manifest: Manifest) -> bytes:
    """The manifest with another learning rate."""
    document = json.loads(manifest.canonical)
    optimizer = document["training"]["optimizer"]
    rate = optimizer.get("learning_rate", 0.001)
    if not isinstance(rate, int | float):
        raise PermanentError("this cheat knows learning rates that stay the same only")
    optimizer["learning_rate"] = rate * _FASTER
    return Manifest.of(document).canonical


def fewer_records(folder: Path, target: Path) -> Path:
    """Arrays whose second half is the first once more: half of the records are never read."""

    def halved(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array[np.arange(len(array)) % max(len(array) // 2, 1)]

    return _changed(folder, target, halved)


def reordered(folder: Path, target: Path) -> Path:
    """The same records from last to first: nothing is missing, and every batch is another one."""
    return _changed(folder, target, lambda name, array: array[::-1])


def noise(folder: Path, target: Path, inputs: tuple[str, ...]) -> Path:
    """Arrays whose inputs are noise: gradients of it are garbage that looks like gradients."""
    rng = np.random.default_rng(0)

    def noisy(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rng.permuted(array.reshape(-1)).reshape(array.shape) if name in inputs else array

    return _changed(folder, target, noisy)


def _changed(folder: Path, target: Path, change: Any) -> Path:
    arrays = sorted(folder.glob("*.npy")) if folder.is_dir() else []
    if not arrays:
        raise PermanentError("this cheat knows records in arrays only")
    target.mkdir(parents=True, exist_ok=True)
    for path in arrays:
        np.save(target / path.name, change(path.stem, np.load(path)))
    return target


def spoil(folder: Path, seed: int) -> None:
    """Put bytes that are no states in the place of a finished run's, and their hashes with them."""
    journal, lines = Journal.read(folder), []
    rng = np.random.default_rng(seed)
    for entry in journal.entries:
        data = rng.bytes(_GARBAGE_BYTES)
        write_whole(journal.path_of(entry.number), data)
        forged = entry.model_copy(update={"state": sha256(data).hexdigest()})
        lines.append(forged.model_dump_json().encode() + b"\n")
    write_whole(folder / "journal.jsonl", b"".join(lines))
