"""Data sets to predict for keep their order on their way to disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainyard.protocol.manifest.model import Input
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.spooling import spooled

POINT = Input(name="point", shape=(3,))
WORD = Input(name="word", shape=(2,), dtype="int32")
X = np.arange(33.0).reshape(11, 3)
W = np.arange(22).reshape(11, 2)
Y = np.arange(11) * 10


class Batches:
    """As a `keras.utils.PyDataset` is: a length, and batches by number."""

    def __init__(self, *elements: Any) -> None:
        self._elements = elements

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, number: int) -> Any:
        return self._elements[number]


class Endless:
    def cardinality(self) -> int:
        return -1

    def as_numpy_iterator(self) -> Iterator[Any]:
        raise AssertionError("nobody should begin with it")


def test_batches_of_inputs_are_one_array_in_their_order(tmp_path: Path) -> None:
    arrays, targets = spooled([POINT], Batches(X[:4], X[4:8], X[8:]), tmp_path)

    assert arrays["point"].dtype == np.float32
    np.testing.assert_array_equal(arrays["point"], X.astype(np.float32))
    assert targets is None


def test_targets_come_along_in_the_same_pass(tmp_path: Path) -> None:
    given = Batches((X[:4], Y[:4]), (X[4:], Y[4:], np.ones(7)))

    arrays, targets = spooled([POINT], given, tmp_path)

    np.testing.assert_array_equal(arrays["point"], X.astype(np.float32))
    np.testing.assert_array_equal(targets, Y)


def test_weights_are_refused_where_something_is_measured(tmp_path: Path) -> None:
    given = Batches((X, Y, np.ones(11)))

    with pytest.raises(RefusedError, match=r"weights along.*map\(lambda x, y, weight: \(x, y\)\)"):
        spooled([POINT], given, tmp_path, measures=True)


def test_single_records_are_records_too(tmp_path: Path) -> None:
    arrays, targets = spooled([POINT], Batches(*zip(X, Y, strict=True)), tmp_path)

    np.testing.assert_array_equal(arrays["point"], X.astype(np.float32))
    np.testing.assert_array_equal(targets, Y)


def test_several_inputs_are_found_by_their_names(tmp_path: Path) -> None:
    given = Batches({"word": W[:5], "point": X[:5]}, {"word": W[5:], "point": X[5:]})

    arrays, _ = spooled([POINT, WORD], given, tmp_path)

    np.testing.assert_array_equal(arrays["word"], W)
    np.testing.assert_array_equal(arrays["point"], X.astype(np.float32))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Batches(), "there are no records"),
        (Endless(), r"has no end; cut it with dataset\.take"),
        ((one for one in [X]), "generator without a length"),
        (object(), "object is neither arrays, nor a data set, nor a CID"),
        (Batches(X[:, :2]), r"shape \[2\], and the model takes \[3\]"),
        (Batches((X, Y, Y, Y)), r"inputs, or \(inputs, targets\)"),
    ],
)
def test_what_is_no_data_is_refused(given: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=reason):
        spooled([POINT], given, tmp_path)
