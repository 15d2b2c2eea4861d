"""The shards and TensorFlow: it reads what we write, and we take what it iterates."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import open_shards, write_shards
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.tensors import example_parser

RANDOM = np.random.default_rng(11)
# One of every way in which a value is carried.
ARRAYS: dict[str, Any] = {
    "image": RANDOM.integers(0, 256, (50, 4, 4, 1), dtype=np.uint8),
    "label": np.arange(50, dtype=np.uint8),
    "tokens": RANDOM.integers(-(2**40), 2**40, (50, 7)),
    "weights": RANDOM.normal(size=(50, 3)).astype(np.float32),
    "exact": RANDOM.normal(size=(50, 2)),
    "half": RANDOM.normal(size=(50, 2)).astype(np.float16),
    "large": RANDOM.integers(2**63, 2**64, (50, 2), dtype=np.uint64),
    "wave": (RANDOM.normal(size=(50, 2)) + 1j).astype(np.complex64),
    "valid": np.arange(50) % 3 == 0,
    "name": np.array([f"Bahnhof Zürich {number}" for number in range(50)]),
}


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


def test_tensorflow_reads_every_kind_of_value(content: Content, tmp_path: Path) -> None:
    path = ContentPath(write_shards(content, ARRAYS, shards=3, seed=5).cid)
    content.get(path, tmp_path / "set")
    dataset = open_shards(content, path)

    files = sorted(str(file) for file in (tmp_path / "set").glob("*.tfrecord"))
    parsed = tf.data.TFRecordDataset(files).map(example_parser(dataset.schema, tf))
    records = list(parsed.as_numpy_iterator())

    assert len(files) == 3
    assert len(records) == 50
    for record, origin in zip(records, dataset.origins(), strict=True):
        for name, array in ARRAYS.items():
            if name == "name":
                assert record[name].decode() == array[origin]
                continue
            assert record[name].dtype == array.dtype
            assert np.array_equal(record[name], array[origin])


def test_plain_parse_needs_nothing_of_ours(content: Content, tmp_path: Path) -> None:
    arrays = {"x": ARRAYS["weights"], "y": ARRAYS["tokens"][:, 0]}
    path = ContentPath(write_shards(content, arrays, shards=1, seed=0).cid)
    content.get(path, tmp_path / "set")
    spec = {
        "x": tf.io.FixedLenFeature([3], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.int64),
    }

    raw = tf.data.TFRecordDataset(str(tmp_path / "set" / "data-00000-of-00001.tfrecord"))
    parsed = list(raw.map(lambda e: tf.io.parse_single_example(e, spec)).as_numpy_iterator())

    origins = open_shards(content, path).origins()
    assert np.array_equal([record["x"] for record in parsed], arrays["x"][origins])
    assert np.array_equal([record["y"] for record in parsed], arrays["y"][origins])


def test_data_set_of_tensorflow_gives_the_same_cid_as_its_arrays(content: Content) -> None:
    arrays = {"x": ARRAYS["image"], "y": ARRAYS["tokens"], "z": ARRAYS["name"]}
    expected = write_shards(
        content, {**arrays, "z": np.char.encode(arrays["z"], "utf-8")}, shards=4, seed=2
    )

    written = write_shards(content, tf.data.Dataset.from_tensor_slices(arrays), shards=4, seed=2)

    assert written.cid == expected.cid


def test_pairs_and_endless_data_sets(content: Content) -> None:
    pairs = tf.data.Dataset.from_tensor_slices((ARRAYS["weights"], ARRAYS["label"]))

    written = write_shards(content, pairs, shards=2, seed=0)

    assert open_shards(content, ContentPath(written.cid)).schema.names == ("x", "y")
    with pytest.raises(DatasetError, match=r"take\(count\)"):
        write_shards(content, pairs.repeat(), shards=2, seed=0)


def test_ragged_values_are_refused_by_name(content: Content) -> None:
    ragged = tf.data.Dataset.from_tensor_slices({"r": tf.ragged.constant([[1], [2, 3]])})

    with pytest.raises(DatasetError, match="'r'"):
        write_shards(content, ragged, shards=1, seed=0)
