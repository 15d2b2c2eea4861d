"""`python -m dapp.previewing.child JOB`: reads a data set, writes arrays, says what it saw."""

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from dapp.previewing.job import Previewed, PreviewError, PreviewJob
from dapp.previewing.reading import Array, Data, guessed_target, narrowed, read

_FIRST = 8
_MOST_VALUES = 64
_MOST_SIDE = 64
_SAMPLE = 200_000
_MOST_CLASSES = 10_000


def main() -> None:
    job = PreviewJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    try:
        said = preview(job).model_dump(mode="json")
    except (PreviewError, ValueError, OSError, MemoryError) as error:
        said = {"error": str(error)[:500] or "it cannot be read"}
    print(json.dumps(said), flush=True)


def preview(job: PreviewJob) -> Previewed:
    data = read(job)
    lengths = {name: len(array) for name, array in data.arrays.items()}
    if len(set(lengths.values())) != 1:
        raise PreviewError(f"arrays have different numbers of records: {lengths}")
    records = next(iter(lengths.values()))
    if records < 1:
        raise PreviewError("there is no record in it")
    target = _target(job, data)
    if target is not None:
        _tidy_target(data, target)
    _split(job, data)
    inputs = [name for name in data.arrays if name != target]
    for part, arrays in (("train", data.arrays), ("test", data.test)):
        for name, array in arrays.items():
            np.save(job.out / f"{part}.{name}.npy", np.ascontiguousarray(array))
    return Previewed(
        kind=data.kind,  # type: ignore[arg-type]
        records=len(next(iter(data.arrays.values()))),
        test_records=len(next(iter(data.test.values()))) if data.test else 0,
        columns=[_column(name, array, data) for name, array in data.arrays.items()],
        target=target,
        inputs=inputs,
        first=_first(data),
        notes=data.notes[:50],
        classes=_classes(data, target),
        predictable=data.table[0] if data.table else [],
        predicted=data.table[1] if data.table else None,
    )


def _target(job: PreviewJob, data: Data) -> str | None:
    if data.target is not None:
        return data.target
    if job.target is not None:
        if job.target not in data.arrays:
            raise PreviewError(f"there is no {job.target!r}; there are {', '.join(data.arrays)}")
        return job.target
    found = guessed_target(list(data.arrays))
    if found is None and len(data.arrays) > 1:
        data.notes.append("say which of the arrays is to be predicted")
    return found


def _tidy_target(data: Data, target: str) -> None:
    """Labels of shape [n, 1] are single values, and whole numbers of 64 bits fit 32."""
    for arrays in (data.arrays, data.test):
        if target in arrays:
            array = arrays[target]
            if array.ndim == 2 and array.shape[1] == 1:
                array = array[:, 0]
            if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
                array = narrowed(array)
            arrays[target] = array
    for arrays in (data.arrays, data.test):
        for name, array in arrays.items():
            if array.dtype == np.float64:
                arrays[name] = array.astype(np.float32)
            elif array.dtype == np.bool_:
                arrays[name] = array.astype(np.uint8)


def _split(job: PreviewJob, data: Data) -> None:
    if data.test or not job.test_percent:
        return
    records = len(next(iter(data.arrays.values())))
    held = records * job.test_percent // 100
    if not held or held == records:
        return
    # Always the same ones, so that equal data has equal CIDs.
    order = np.random.default_rng(0).permutation(records)
    data.test = {name: array[order[:held]] for name, array in data.arrays.items()}
    data.arrays = {name: array[order[held:]] for name, array in data.arrays.items()}


def _column(name: str, array: Array, data: Data) -> dict[str, Any]:
    flat = array.reshape(-1)[:_SAMPLE]
    found: dict[str, Any] = {
        "name": name,
        "dtype": str(array.dtype),
        "shape": list(array.shape[1:]),
        "labels": data.labels.get(name),
    }
    if flat.size and array.dtype.kind in "iuf":
        values = flat.astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            found |= {
                "low": float(finite.min()),
                "high": float(finite.max()),
                "mean": float(finite.mean()),
            }
    if array.ndim == 1 and array.dtype.kind in "iu":
        values, counts = np.unique(array, return_counts=True)
        order = np.argsort(-counts)[:10]
        names = data.labels.get(name)
        found["distinct"] = len(values)
        found["most_frequent"] = [
            [names[int(values[at])] if names else str(values[at]), int(counts[at])] for at in order
        ]
    return found


def _first(data: Data) -> list[dict[str, Any]]:
    count = min(_FIRST, len(next(iter(data.arrays.values()))))
    return [
        {name: _shown(name, array[place], data) for name, array in data.arrays.items()}
        for place in range(count)
    ]


def _shown(name: str, value: Any, data: Data) -> Any:
    array = np.asarray(value)
    if array.ndim == 0:
        labels = data.labels.get(name)
        plain = array.item()
        return labels[plain] if labels and isinstance(plain, int) else _plain(plain)
    png = _png(array)
    if png is not None:
        return {"png": png}
    return [_plain(one) for one in array.reshape(-1)[:_MOST_VALUES].tolist()]


def _plain(value: Any) -> Any:
    return value if not isinstance(value, float) or np.isfinite(value) else None


def _png(array: Array) -> str | None:
    is_image = array.dtype == np.uint8 and array.ndim in (2, 3)
    if not is_image or (array.ndim == 3 and array.shape[-1] not in (1, 3)):
        return None
    picture = Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array)
    picture.thumbnail((_MOST_SIDE, _MOST_SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _classes(data: Data, target: str | None) -> int | None:
    if target is None:
        return None
    array = data.arrays[target]
    if array.dtype.kind not in "iu" or array.ndim != 1:
        return None
    most = int(array.max()) + 1
    return most if 1 < most <= _MOST_CLASSES and int(array.min()) >= 0 else None


if __name__ == "__main__":
    main()
