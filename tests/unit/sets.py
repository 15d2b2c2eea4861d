"""Small sets of records for tests of what feeds a run, and ways to write them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.datasets import write_shards
from trainyard.engine.order import Numbers
from trainyard.protocol.manifest import Source

Arrays = dict[str, npt.NDArray[Any]]

COUNT = 100
NOWHERE = "ipfs://bafybeiaqlc6we2dzvp2bzk6wqywbf2pwh2kr2m3g7dbz7pvhjfabvzpnbm"
IN_MEMORY, FROM_DISK = 1 << 30, 0


def digits(count: int = COUNT) -> Arrays:
    random = np.random.default_rng(5)
    return {
        "image": random.integers(0, 256, (count, 8, 8), dtype=np.uint8),
        "label": np.arange(count, dtype=np.int64),
    }


def source_of(kind: str, arrays: Arrays, path: object = NOWHERE, **changes: Any) -> Source:
    first, *others = arrays
    stated = {
        "kind": kind,
        "path": path if isinstance(path, str) else f"ipfs://{path}",
        "records": len(arrays[first]),
        "features": {
            name: {"dtype": values.dtype.newbyteorder("=").name, "shape": values.shape[1:]}
            for name, values in arrays.items()
        },
        "inputs": (first, *others[:-1]),
        "target": others[-1],
    }
    return Source.model_validate({**stated, **changes})


def save_folder(folder: Path, arrays: Arrays) -> Path:
    folder.mkdir()
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    return folder


def save_shards(content: Content, folder: Path, arrays: Arrays, shards: int = 3) -> Path:
    sharded = write_shards(content, arrays, shards=shards, seed=1)
    content.get(ContentPath(sharded.cid), folder)
    return folder


def same(batch: Arrays, arrays: Arrays, numbers: Numbers) -> bool:
    return sorted(batch) == sorted(arrays) and all(
        batch[name].dtype == values.dtype.newbyteorder("=")
        and np.array_equal(batch[name], values[numbers], equal_nan=values.dtype.kind == "f")
        for name, values in arrays.items()
    )


def numbers(*wanted: int) -> Numbers:
    return np.array(wanted, np.int64)
