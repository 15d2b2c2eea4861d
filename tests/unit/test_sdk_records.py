"""Arrays, batches and CIDs as records of a manifest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import add_arrays, load_arrays, open_shards, write_shards
from trainyard.protocol.manifest.model import Input
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.records import records_of, unlabelled

Arrays = dict[str, npt.NDArray[Any]]
POINT = Input(name="point", shape=(3,))
WORD = Input(name="word", shape=(2,), dtype="int32")


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    found = Content(EmbeddedStore(tmp_path / "store"), [])
    yield found
    found.close()


def test_arrays_are_converted_as_keras_would(content: Content) -> None:
    x, y = np.arange(12.0).reshape(4, 3), [0, 1, 0, 1]

    records = records_of(content, [POINT], x, y)
    cid, count = records.add(content)

    assert (records.kind, records.count, count) == ("npz", 4, 4)
    assert records.features == {"point": ("float32", (3,)), "target": ("int64", ())}
    kept = load_arrays(content, ContentPath.parse(cid))
    np.testing.assert_array_equal(kept["point"], x.astype(np.float32))
    assert records.source(cid, count)["path"] == f"ipfs://{cid}"


def test_inputs_are_found_by_their_names_or_their_order(content: Content) -> None:
    point, word = np.zeros((2, 3), np.float32), np.ones((2, 2), np.int64)

    by_name = records_of(content, [POINT, WORD], {"word": word, "point": point}, [1.0, 2.0])
    by_order = records_of(content, [POINT, WORD], [point, word], [1.0, 2.0])

    assert by_name.features == by_order.features
    assert by_name.features["word"] == ("int32", (2,))
    assert by_name.features["target"] == ("float32", ())
    assert by_name.add(content) == by_order.add(content)


def test_a_last_axis_of_one_may_be_left_out(content: Content) -> None:
    records = records_of(content, [Input(name="value", shape=(1,))], np.zeros(5), np.zeros(5))

    assert records.features["value"] == ("float32", (1,))


def test_weights_are_a_feature_of_their_own(content: Content) -> None:
    records = records_of(content, [POINT], np.zeros((2, 3)), [0, 1], [1.0, 2.0])

    assert records.weight == "weight"
    assert records.source()["weight"] == "weight"


RAGGED = [[1.0, 2.0, 3.0], [1.0]]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ((RAGGED, [0, 1]), "x"),
        (({"point": RAGGED}, [0, 1]), "x"),
        ((np.zeros((2, 3)), RAGGED), "y"),
        ((np.zeros((2, 3)), [0, 1], [1.0, "much"]), "sample_weight"),
        (([([[1.0], [2.0, 3.0]], [0, 1])],), "x"),
    ],
)
def test_lists_that_make_no_array_are_refused_by_name(
    content: Content, given: tuple[Any, ...], name: str
) -> None:
    with pytest.raises(RefusedError, match=rf"^{name}: no array can be made of it .*one shape"):
        records_of(content, [POINT], *given)


class Batches:
    """A sequence of batches with a length, as Keras has them."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        if number >= 3:
            raise IndexError(number)
        return np.full((2, 3), float(number)), np.array([number, number])


def test_batches_become_shards_without_a_record_lost(content: Content) -> None:
    records = records_of(content, [POINT], Batches())
    cid, count = records.add(content)

    assert (records.kind, records.count, count) == ("tfrecord", None, 6)
    found = [int(record["target"]) for record in open_shards(content, ContentPath.parse(cid))]
    assert sorted(found) == [0, 0, 1, 1, 2, 2]


class Passing:
    """Batches with a length that can be gone through but once: it is its own iterator."""

    def __init__(self) -> None:
        self._next = 0

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> "Passing":
        return self

    def __next__(self) -> tuple[Any, Any]:
        if self._next == 3:
            raise StopIteration
        self._next += 1
        return np.full((2, 3), float(self._next)), np.array([self._next, self._next])


class Handing:
    """The same, by an iterator that it keeps and hands out again."""

    def __init__(self) -> None:
        self._batches = iter(Passing())

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[Any]:
        return self._batches


class Resetting(Passing):
    """The same, which goes back to its beginning each time it is asked for its iterator."""

    def __iter__(self) -> "Resetting":
        self._next = 0
        return self


@pytest.mark.parametrize("kind", [Passing, Handing, Resetting])
def test_batches_that_pass_but_once_lose_no_record(content: Content, kind: Any) -> None:
    cid, count = records_of(content, [POINT], kind()).add(content)

    assert count == 6
    found = [int(record["target"]) for record in open_shards(content, ContentPath.parse(cid))]
    assert sorted(found) == [1, 1, 2, 2, 3, 3]


def test_arrays_that_are_content_already_are_read_by_their_heads(content: Content) -> None:
    arrays: Arrays = {"point": np.zeros((7, 3), np.float32), "label": np.zeros(7, np.int64)}
    cid = str(add_arrays(content, arrays).cid)

    for y in (None, "label"):
        records = records_of(content, [POINT], f"ipfs://{cid}", y)
        assert (records.target, records.inputs, records.count) == ("label", ("point",), 7)
        assert records.add(content) == (cid, 7)


def test_shards_that_are_content_already(content: Content) -> None:
    arrays: Arrays = {"image": np.zeros((7, 3), np.float32), "label": np.zeros(7, np.int64)}
    cid = str(write_shards(content, arrays, shards=2, seed=1).cid)

    records = records_of(content, [POINT], cid, "label")

    assert (records.kind, records.inputs, records.count) == ("tfrecord", ("image",), 7)


def test_weights_of_stored_records_are_named_as_their_target_is(content: Content) -> None:
    arrays: Arrays = {
        "image": np.zeros((7, 3), np.float32),
        "label": np.zeros(7, np.int64),
        "trust": np.ones(7, np.float32),
    }
    folder = str(add_arrays(content, arrays).cid)
    shards = str(write_shards(content, arrays, shards=2, seed=1).cid)

    for cid in (folder, shards):
        records = records_of(content, [POINT], cid, "label", "trust")
        assert (records.inputs, records.target, records.weight) == (("image",), "label", "trust")
        assert records.source()["weight"] == "trust"
        named = records_of(content, [Input(name="image", shape=(3,))], cid, None, "trust")
        assert named.target == "label"
        with pytest.raises(RefusedError, match="sample_weight: there is no feature 'faith'"):
            records_of(content, [POINT], cid, "label", "faith")


def test_weights_that_would_be_dropped_are_refused(content: Content) -> None:
    weights = np.ones(6)
    cid = str(add_arrays(content, {"point": np.zeros((6, 3), np.float32), "y": weights}).cid)

    for x, why in (
        (Batches(), r"sample_weight: a generator .* \(inputs, targets, weights\)"),
        (Passing(), r"sample_weight: a generator .* \(inputs, targets, weights\)"),
        (Rows(), r"sample_weight: a data set .* \(inputs, targets, weights\)"),
        (cid, "sample_weight: .*the name of the feature"),
    ):
        with pytest.raises(RefusedError, match=why):
            records_of(content, [POINT], x, None, weights)


class Rows:
    """As much of a `tf.data.Dataset` as tells it from all else."""

    def as_numpy_iterator(self) -> Iterator[Any]:
        raise AssertionError("nobody should begin with it")


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        (np.zeros((4, 2)), np.zeros(4), r"shape \[2\], and the model takes \[3\]"),
        (np.zeros((4, 3)), np.zeros(5), "different numbers of records"),
        (np.zeros((4, 3)), None, "no targets"),
        (np.zeros((0, 3)), np.zeros(0), "no records"),
        (np.full((4, 3), "a"), np.zeros(4), "make numbers of them"),
        (np.zeros((4, 3)), np.full(4, "a"), "y has values of"),
        ({"pint": np.zeros((4, 3))}, np.zeros(4), "no 'point'.*it has 'pint'"),
        ((number for number in range(3)), None, "without a length.*PyDataset"),
        (Batches(), np.zeros(6), "leave y out"),
    ],
)
def test_what_does_not_fit_is_refused(content: Content, x: Any, y: Any, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        records_of(content, [POINT], x, y)


def test_data_by_cid_that_does_not_fit_names_what_there_is(content: Content) -> None:
    arrays: Arrays = {"image": np.zeros((7, 3), np.float32), "label": np.zeros(7, np.int64)}
    cid = str(add_arrays(content, arrays).cid)

    with pytest.raises(RefusedError, match="the data has 'image', 'label'"):
        records_of(content, [POINT], cid)
    with pytest.raises(RefusedError, match="no feature 'class'"):
        records_of(content, [Input(name="image", shape=(3,))], cid, "class")


def test_records_to_predict_for_have_inputs_alone(content: Content) -> None:
    x = np.arange(12.0).reshape(4, 3)

    records = unlabelled(content, [POINT], x)

    assert records.features == {"point": ("float32", (3,))}
    assert "target" not in records.source()
    assert records.add_part is not None
    part = load_arrays(content, ContentPath.parse(records.add_part(content, 1, 2)))
    np.testing.assert_array_equal(part["point"], x[1:3].astype(np.float32))


def test_stored_records_are_predicted_for_without_their_labels(content: Content) -> None:
    rows: Arrays = {"point": np.zeros((6, 3), np.float32), "label": np.arange(6)}
    shards = str(write_shards(content, rows, shards=2, seed=3).cid)
    folder = str(add_arrays(content, {"a": np.zeros((5, 3), np.float32), "b": np.zeros(5)}).cid)

    stored = unlabelled(content, [POINT], shards)
    named = unlabelled(content, [POINT], folder, "b")

    assert (stored.kind, stored.inputs, stored.target, stored.count) == (
        *("tfrecord", ("point",)),
        *(None, 6),
    )
    assert (named.inputs, named.features) == (("a",), {"a": ("float32", (3,))})
    with pytest.raises(RefusedError, match="the model reads 'point'; the data has 'a', 'b'"):
        unlabelled(content, [POINT], folder)
    with pytest.raises(RefusedError, match="there is no feature 'c'"):
        unlabelled(content, [POINT], shards, "c")
