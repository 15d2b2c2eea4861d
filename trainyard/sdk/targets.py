"""Targets to compare predictions with, which no worker is told."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from trainyard.content.errors import NotFoundError
from trainyard.content.names import ContentPath
from trainyard.datasets import load_arrays, open_shards
from trainyard.datasets.index import INDEX_NAME
from trainyard.protocol.manifest.values import Dtype, Tensor
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.market import Market
from trainyard.sdk.records import Array, array_of, plain
from trainyard.sdk.subjects import Subject


def targets_of(market: Market, x: Any, y: Any, found: Array | None) -> Array:
    """The targets to compare with: given, found with the inputs, or named among stored records."""
    if found is not None:
        if y is not None:
            raise RefusedError("y: the data set brings its targets along; leave y out")
        return plain(found)
    if y is None:
        raise RefusedError("there are no targets: give y")
    if not isinstance(y, str):
        return plain(array_of(y, "y"))
    if not isinstance(x, str):
        raise RefusedError(f"y: {y!r} names a feature of records by their CID, and x is none")
    path = ContentPath.parse(x)
    try:
        market.content.stat(path.child(INDEX_NAME))
    except NotFoundError:
        return plain(load_arrays(market.content, path)[y])
    return plain(np.stack([one[y] for one in open_shards(market.content, path)]))


def check_targets(
    subject: Subject, objectives: Sequence[Any], targets: Array, records: int | None
) -> None:
    if records is not None and records != len(targets):
        raise RefusedError(f"x has {records} records, and y {len(targets)}")
    given = Tensor(targets.shape[1:], cast(Dtype, str(targets.dtype)))
    for objective in objectives:
        try:
            objective.check(given, subject.model.output)
        except ValueError as error:
            raise RefusedError(f"y: {objective.type} {error}") from error
