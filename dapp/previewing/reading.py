"""Files of each kind as arrays by name, one record for each first index."""

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from dapp.previewing.job import PreviewError, PreviewJob
from trainyard.datasets.example import decode_example
from trainyard.datasets.tfrecord import read_records

Array: TypeAlias = npt.NDArray[Any]
_TARGETS = ("y", "label", "labels", "target", "targets", "class", "classes")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
_MOST_PIXELS, _LARGEST_SIDE = 64_000_000, 1024
_MOST_DISTINCT = 32
_MOST_LABELS = 1_000
_MOST_COLUMNS = 2_000
_DELIMITERS = ",;\t|"


@dataclass(slots=True)
class Data:
    """Arrays, and what was learned about them on the way."""

    kind: str
    arrays: dict[str, Array]
    test: dict[str, Array] = field(default_factory=dict)
    target: str | None = None
    labels: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Of a table, whose arrays have other names than its columns.
    table: tuple[list[str], str] | None = None


def read(job: PreviewJob) -> Data:
    kind = job.kind or _guess(job.source)
    match kind:
        case "npz" | "npy":
            return _arrays(job, kind)
        case "csv":
            return _table(job)
        case "images":
            return _pictures(job)
        case _:
            return _examples(job)


def _guess(source: Path) -> str:
    if source.is_dir():
        names = [path.name.lower() for path in source.rglob("*") if path.is_file()]
        if any(name.endswith(_IMAGES) for name in names):
            return "images"
        if names and all(name.endswith(".npy") for name in names):
            return "npz"
        if any(".tfrecord" in name for name in names):
            return "tfrecord"
        raise PreviewError("the folder has neither images nor .npy nor .tfrecord files in it")
    with source.open("rb") as file:
        head = file.read(12)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK"):
        with zipfile.ZipFile(source) as archive:
            is_npz = any(name.endswith(".npy") for name in archive.namelist())
        return "npz" if is_npz else "images"
    # A record begins with its length in eight bytes, of which the upper ones are zero.
    return "tfrecord" if head[4:8] == bytes(4) else "csv"


def _arrays(job: PreviewJob, kind: str) -> Data:
    source = job.source
    if source.is_dir():
        found = {path.stem: _load(path) for path in sorted(source.glob("*.npy"))}
    else:
        loaded = _load(source)
        found = (
            {"x": loaded}
            if isinstance(loaded, np.ndarray)
            else {name: np.asarray(loaded[name]) for name in loaded.files}
        )
    for name, array in found.items():
        if array.dtype.hasobject or array.dtype.kind not in "biuf":
            raise PreviewError(f"{name!r} has values of type {array.dtype}; give numbers")
        if array.ndim == 0:
            raise PreviewError(f"{name!r} is a single value; the first axis counts the records")
    test = {}
    if any(name.endswith("_train") for name in found):
        # As Keras' own data sets are: x_train, y_train, x_test, y_test.
        test = {n.removesuffix("_test"): a for n, a in found.items() if n.endswith("_test")}
        found = {n.removesuffix("_train"): a for n, a in found.items() if n.endswith("_train")}
    return Data(kind, found, test)


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise PreviewError(f"{path.name} holds no plain arrays: {error}") from error


def _table(job: PreviewJob) -> Data:
    text = job.source.read_bytes().decode("utf-8-sig", errors="replace")
    try:
        dialect = csv.Sniffer().sniff(text[:65_536], _DELIMITERS)
        delimiter = dialect.delimiter
    except csv.Error:
        delimiter = ","
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    if len(rows) < 2:
        raise PreviewError("a table needs at least two rows")
    width = len(rows[0])
    if width < 2 or width > _MOST_COLUMNS:
        raise PreviewError(f"a table has 2 to {_MOST_COLUMNS} columns, not {width}")
    has_header = not any(_is_number(cell) for cell in rows[0])
    names = [cell.strip() or f"c{n}" for n, cell in enumerate(rows[0])] if has_header else []
    names = names or [f"c{number}" for number in range(width)]
    if len(set(names)) != width:
        raise PreviewError("two columns have the same name")
    body = rows[1:] if has_header else rows
    whole = [row for row in body if len(row) == width and all(cell.strip() for cell in row)]
    data = Data("csv", {})
    if len(whole) < len(body):
        data.notes.append(f"{len(body) - len(whole)} rows with missing values were left out")
    if not whole:
        raise PreviewError("no row has a value in each column")
    target = job.target or names[-1]
    if target not in names:
        raise PreviewError(f"there is no column {target!r}; there are {', '.join(names[:20])}")
    parts: list[Array] = []
    for number, name in enumerate(names):
        cells = [row[number].strip() for row in whole]
        if name == target:
            data.arrays["label"] = _target_of(cells, data)
        elif name in job.ignore:
            data.notes.append(f"the column {name!r} was left out, as asked")
        else:
            parts += _features_of(name, cells, data)
    if not parts:
        raise PreviewError("no column is left to learn from")
    data.arrays = {"features": np.stack(parts, axis=1), "label": data.arrays["label"]}
    data.target, data.table = "label", (names, target)
    return data


def _target_of(cells: list[str], data: Data) -> Array:
    if all(_is_number(cell) for cell in cells):
        values = np.array(cells, dtype=np.float64)
        distinct = np.unique(values)
        is_whole = np.all(values == np.round(values))
        if not is_whole or len(distinct) > _MOST_LABELS:
            return values.astype(np.float32)
        labels = [f"{value:g}" for value in distinct]
        if np.array_equal(distinct, np.arange(len(distinct))):
            return values.astype(np.int32)
        data.labels["label"] = labels
        return np.searchsorted(distinct, values).astype(np.int32)
    names = sorted(set(cells))
    if len(names) > _MOST_LABELS:
        raise PreviewError(
            f"the target has {len(names)} different texts; use at most {_MOST_LABELS}"
        )
    data.labels["label"] = names
    places = {name: number for number, name in enumerate(names)}
    return np.array([places[cell] for cell in cells], dtype=np.int32)


def _features_of(name: str, cells: list[str], data: Data) -> list[Array]:
    if all(_is_number(cell) for cell in cells):
        return [np.array(cells, dtype=np.float32)]
    names = sorted(set(cells))
    if len(names) > _MOST_DISTINCT:
        data.notes.append(f"the column {name!r} has {len(names)} texts, and was left out")
        return []
    data.notes.append(f"the column {name!r} became {len(names)} columns of zeros and ones")
    return [np.array([cell == one for cell in cells], dtype=np.float32) for one in names]


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _pictures(job: PreviewJob) -> Data:
    """Images in folders by class; all are brought to one size."""
    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    found = sorted(_image_files(job.source), key=lambda one: one[0])
    if not found:
        raise PreviewError("there are no images in it")
    labels = sorted({Path(name).parent.name for name, _ in found})
    size, is_grey = job.image_size, True
    opened: list[tuple[str, Image.Image]] = []
    for name, data in found:
        try:
            picture = Image.open(io.BytesIO(data))
            picture.load()
        except Exception as error:
            # Decoders raise whatever they like about broken files.
            raise PreviewError(f"{name} is no image that can be read: {error}") from error
        size = size or picture.size
        is_grey = is_grey and picture.mode in ("L", "1")
        opened.append((Path(name).parent.name, picture))
    if size is None or max(size) > _LARGEST_SIDE or min(size) < 1:
        raise PreviewError(f"images are at most {_LARGEST_SIDE} pixels wide; give a size")
    mode = "L" if is_grey else "RGB"
    pixels = [
        np.asarray(picture.convert(mode).resize(size), dtype=np.uint8) for _, picture in opened
    ]
    images = np.stack(pixels)
    data_ = Data("images", {"image": images[..., np.newaxis] if is_grey else images})
    if len(labels) < 2:
        data_.notes.append("all images are in one folder: put each class into its own")
        return data_
    data_.arrays["label"] = np.array([labels.index(label) for label, _ in opened], dtype=np.int32)
    data_.labels["label"] = labels
    data_.target = "label"
    return data_


def _image_files(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        for path in source.rglob("*"):
            if path.is_file() and path.suffix.lower() in _IMAGES:
                yield path.relative_to(source).as_posix(), path.read_bytes()
        return
    with zipfile.ZipFile(source) as archive:
        for info in archive.infolist():
            if info.filename.lower().endswith(_IMAGES) and info.file_size < _MOST_PIXELS:
                yield info.filename, archive.read(info)


def _examples(job: PreviewJob) -> Data:
    """TFRecord files of tf.train.Example, whose features all have one length."""
    files = [job.source]
    if job.source.is_dir():
        files = sorted(p for p in job.source.rglob("*") if p.is_file() and ".tfrecord" in p.name)
    columns: dict[str, list[Any]] = {}
    count = 0
    for path in files:
        with path.open("rb") as file:
            for record in read_records(file):
                for name, values in decode_example(record).items():
                    columns.setdefault(name, []).append(_value(values))
                count += 1
    data = Data("tfrecord", {})
    for name, values in sorted(columns.items()):
        if len(values) != count:
            data.notes.append(f"{name!r} is not in each record, and was left out")
            continue
        try:
            data.arrays[name] = np.stack(values)
        except ValueError:
            data.notes.append(f"{name!r} is of different lengths, and was left out")
        except TypeError:
            data.notes.append(f"{name!r} holds bytes that are no image, and was left out")
    if not data.arrays:
        raise PreviewError("no feature is in each record with one length")
    return data


def _value(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        found = narrowed(values) if values.dtype == np.int64 else values
        return found[0] if found.size == 1 else found
    if len(values) == 1:
        try:
            picture = Image.open(io.BytesIO(values[0]))
            array = np.asarray(picture.convert("L" if picture.mode in ("L", "1") else "RGB"))
        except Exception:
            # No image: left out with a note.
            return None
        return array[..., np.newaxis] if array.ndim == 2 else array
    return None


def narrowed(values: Array) -> Array:
    """Whole numbers of 64 bits in 32, if all of them fit: none is made into another."""
    limits = np.iinfo(np.int32)
    if values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        worst = max((int(values.min()), int(values.max())), key=abs)
        raise PreviewError(
            f"the whole number {worst} does not fit 32 bits: use smaller ones, or floating point"
        )
    return values.astype(np.int32)


def guessed_target(names: list[str]) -> str | None:
    return next((name for name in names if name.lower() in _TARGETS), None)
