"""Data sets in a store: what is written, what comes back, and what is refused."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trainyard.content.build import build_directory, build_file
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import UnavailableError
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built
from trainyard.datasets import (
    Sharded,
    add_arrays,
    load_arrays,
    open_shards,
    records_of,
    write_shards,
)
from trainyard.datasets.errors import CorruptRecordError, DatasetError, MismatchError
from trainyard.datasets.index import Index
from trainyard.datasets.tfrecord import frame

Arrays = dict[str, npt.NDArray[Any]]


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


def digits(count: int = 100) -> Arrays:
    random = np.random.default_rng(5)
    return {
        "image": random.integers(0, 256, (count, 8, 8), dtype=np.uint8),
        "label": np.arange(count, dtype=np.int64),
    }


def rows(arrays: Arrays) -> Iterator[dict[str, Any]]:
    for number in range(len(next(iter(arrays.values())))):
        yield {name: values[number] for name, values in arrays.items()}


def read_tree(content: Content, path: ContentPath) -> dict[str, bytes]:
    return {
        entry.name: b"".join(content.cat(path.child(entry.name)))
        for entry in content.ls(path)
        if entry.kind == "file"
    }


class Elements:
    """Stands where a `tf.data.Dataset` would; the real one is read in the integration tests."""

    def __init__(self, elements: list[Any], cardinality: int) -> None:
        self._elements, self._cardinality = elements, cardinality

    def cardinality(self) -> int:
        return self._cardinality

    def as_numpy_iterator(self) -> Iterator[Any]:
        return iter(self._elements)


class TestArrays:
    def test_each_is_the_file_that_numpy_saves(self, content: Content) -> None:
        arrays = digits(3)
        built = add_arrays(content, arrays)

        files = read_tree(content, ContentPath(built.cid))

        saved = io.BytesIO()
        np.save(saved, arrays["image"])
        assert sorted(files) == ["image.npy", "label.npy"]
        assert files["image.npy"] == saved.getvalue()
        assert content.store.pins() == {built.cid}

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros(0),
            np.array(5),
            np.arange(300_000, dtype=np.int64),
            np.array(["a", "bc"]),
            np.array([True]),
            np.zeros((2, 0, 3), np.float32),
        ],
        ids=lambda array: f"{array.dtype}{array.shape}",
    )
    def test_come_back_as_they_were(self, content: Content, array: npt.NDArray[Any]) -> None:
        built = add_arrays(content, {"a": array})

        loaded = load_arrays(content, ContentPath(built.cid))["a"]

        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        assert np.array_equal(loaded, array)

    def test_cid_depends_on_values_alone(self, content: Content, tmp_path: Path) -> None:
        values = np.arange(24, dtype=np.float32).reshape(4, 6)
        np.save(tmp_path / "values.npy", values)
        same = [
            values,
            np.asfortranarray(values),
            values.astype(">f4"),
            np.repeat(values, 2, axis=0)[::2],
            np.load(tmp_path / "values.npy", mmap_mode="r"),
        ]

        assert len({add_arrays(content, {"x": array, "y": values}).cid for array in same}) == 1
        assert (
            add_arrays(content, {"x": values + 1, "y": values}).cid
            != add_arrays(content, {"x": values, "y": values}).cid
        )

    def test_objects_are_refused_and_nothing_is_kept(self, content: Content) -> None:
        with pytest.raises(DatasetError, match="'x' holds Python objects"):
            add_arrays(content, {"a": np.zeros(9), "x": np.array([{}], dtype=object)})

        assert content.store.usage().blocks == 0

    def test_pickle_of_a_stranger_is_not_run(self, content: Content) -> None:
        saved = io.BytesIO()
        np.save(saved, np.array([{}], dtype=object), allow_pickle=True)
        root = add_tree(content, {"x.npy": saved.getvalue()})

        with pytest.raises(DatasetError, match=r"x\.npy is no array"):
            load_arrays(content, ContentPath(root.cid))

    def test_progress_ends_at_the_whole(self, content: Content) -> None:
        seen: list[tuple[int, int | None]] = []

        add_arrays(content, digits(), progress=lambda state: seen.append((state.done, state.total)))

        assert seen[-1][0] >= 100 * 64 + 100 * 8
        assert seen == sorted(seen)


class TestSharding:
    @pytest.mark.parametrize(("count", "shards"), [(100, 8), (7, 7), (1, 1), (64, 3)])
    def test_every_record_is_in_one_shard_and_sizes_differ_by_one(
        self, content: Content, count: int, shards: int
    ) -> None:
        sharded = write_shards(content, digits(count), shards=shards, seed=1)

        dataset = open_shards(content, ContentPath(sharded.cid))
        sizes = [shard.records for shard in dataset.index.shards]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == len(dataset) == count
        assert sorted(int(record["label"]) for record in dataset) == list(range(count))

    def test_any_record_is_found_by_number(self, content: Content) -> None:
        arrays = digits()
        dataset = open_shards(
            content, ContentPath(write_shards(content, arrays, shards=8, seed=1).cid)
        )

        origins = dataset.origins()
        for number in (0, 1, 12, 13, 50, 98, 99, -1, np.int64(3)):
            record = dataset[int(number)]
            origin = origins[int(number)]
            assert np.array_equal(record["image"], arrays["image"][origin])
            assert record["image"].dtype == np.uint8
            assert record["label"] == origin
        for number in (100, -101):
            with pytest.raises(IndexError, match="of 100"):
                dataset[number]

    def test_streamed_order_is_that_of_the_numbers(self, content: Content) -> None:
        sharded = write_shards(content, digits(30), shards=4, seed=9)
        dataset = open_shards(content, ContentPath(sharded.cid))

        assert [int(record["label"]) for record in dataset] == dataset.origins().tolist()

    def test_same_seed_gives_the_same_cid_and_another_one_another(self, content: Content) -> None:
        arrays = digits()
        first = write_shards(content, arrays, shards=4, seed=1)

        assert write_shards(content, arrays, shards=4, seed=1).cid == first.cid
        assert write_shards(content, rows(arrays), shards=4, seed=1).cid == first.cid
        assert write_shards(content, arrays, shards=4, seed=2).cid != first.cid

    def test_cid_stays_what_it_was_in_earlier_versions(self, content: Content) -> None:
        # Published data sets are named by it: change the format's number rather than this.
        arrays: Arrays = {"x": np.arange(20, dtype=np.float32), "y": np.arange(20)}

        sharded = write_shards(content, arrays, shards=3, seed=7)

        assert str(sharded.cid) == "bafybeiaqlc6we2dzvp2bzk6wqywbf2pwh2kr2m3g7dbz7pvhjfabvzpnbm"

    def test_shards_are_fair_samples(self, content: Content) -> None:
        """A record's shard says nothing of its place in the source, nor do neighbours meet."""
        count, shards = 4_000, 4
        sharded = write_shards(
            content, {"y": np.arange(count, dtype=np.int64)}, shards=shards, seed=3
        )
        origins = open_shards(content, ContentPath(sharded.cid)).origins()

        # Quarters of the source against shards: chi-square with 9 degrees of freedom.
        table = np.zeros((shards, 4))
        for shard, part in enumerate(np.split(origins, shards)):
            table[shard] = np.bincount(part // (count // 4), minlength=4)
        expected = count / 16
        assert ((table - expected) ** 2 / expected).sum() < 27.9  # one seed in a thousand exceeds
        assert abs(np.corrcoef(origins[:-1], origins[1:])[0, 1]) < 0.06

    def test_source_is_read_once(self, content: Content) -> None:
        once = rows(digits(10))

        write_shards(content, once, shards=2, seed=0)

        assert list(once) == []

    @pytest.mark.parametrize(
        ("source", "shards", "message"),
        [
            ({"x": np.zeros(3)}, 4, "4 shards of 3 records would leave some empty; use at most 3"),
            ({"x": np.zeros(3)}, 0, "1 to 10000 shards, not 0"),
            ({"x": np.zeros(0)}, 1, "no records"),
            ([], 1, "no records"),
            ([{}], 1, "no values"),
            ({"x": np.zeros(3), "y": np.zeros(4)}, 1, "first axis of one length"),
            ({"x": np.array(1)}, 1, "first axis of one length"),
            ({}, 1, "first axis of one length"),
        ],
    )
    def test_what_cannot_be_sharded_is_refused(
        self, content: Content, source: Any, shards: int, message: str
    ) -> None:
        with pytest.raises(DatasetError, match=message):
            write_shards(content, source, shards=shards, seed=0)

        assert content.store.usage().blocks == 0

    def test_records_of_two_shapes_are_refused(self, content: Content) -> None:
        with pytest.raises(MismatchError, match=r"record 1: 'x' is int64 of shape \[3\]"):
            write_shards(content, [{"x": np.arange(2)}, {"x": np.arange(3)}], shards=1, seed=0)

    def test_elements_of_a_data_set_get_names(self) -> None:
        pairs = Elements([(np.int64(1), np.int64(2))], 1)

        assert list(records_of(pairs)) == [{"x": 1, "y": 2}]
        assert list(records_of(pairs, ["a", "b"])) == [{"a": 1, "b": 2}]
        assert list(records_of(Elements([{"k": 3}], 1))) == [{"k": 3}]
        assert list(records_of(Elements([np.int64(4)], 1))) == [{"x": 4}]
        with pytest.raises(DatasetError, match="as many names"):
            list(records_of(Elements([(1, 2, 3)], 1)))

    def test_endless_data_set_is_refused(self, content: Content) -> None:
        with pytest.raises(DatasetError, match=r"take\(count\)"):
            write_shards(content, Elements([np.int64(1)], -1), shards=1, seed=0)


class TestDamage:
    """Trees that a stranger published: every block is right, and the data set is not."""

    @pytest.fixture
    def sharded(self, content: Content) -> Sharded:
        return write_shards(content, digits(10), shards=2, seed=0)

    @pytest.fixture
    def files(self, content: Content, sharded: Sharded) -> dict[str, Any]:
        path = ContentPath(sharded.cid)
        return {**read_tree(content, path), "offsets": read_tree(content, path.child("offsets"))}

    def test_flipped_byte_in_a_record_is_named(
        self, content: Content, files: dict[str, Any]
    ) -> None:
        name = "data-00001-of-00002.tfrecord"
        damaged = bytearray(files[name])
        damaged[40] ^= 1
        dataset = open_shards(
            content, ContentPath(add_tree(content, {**files, name: bytes(damaged)}).cid)
        )

        with pytest.raises(CorruptRecordError, match=rf"{name}, record 0 at byte 0: .*checksum"):
            dataset[5]
        with pytest.raises(CorruptRecordError, match=rf"{name}, record 0: .*checksum"):
            list(dataset.shard(1))
        assert dataset[4]["image"].shape == (8, 8)
        assert dataset[6]["image"].shape == (8, 8)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"data-00000-of-00002.tfrecord": b""}, "has 0 bytes where the index says"),
            ({"data-00000-of-00002.tfrecord": None}, "missing, though the data set's index"),
            ({"data-00000-of-00002.tfrecord": {}}, "is a directory"),
            ({"index.json": None}, "no sharded data set"),
            ({"index.json": b"{"}, "no index of shards"),
            ({"index.json": b"{}"}, "no index of shards: seed: Field required"),
        ],
        ids=str,
    )
    def test_parts_that_disagree_are_refused(
        self, content: Content, files: dict[str, Any], change: dict[str, Any], message: str
    ) -> None:
        kept = {name: data for name, data in {**files, **change}.items() if data is not None}

        with pytest.raises(DatasetError, match=message):
            open_shards(content, ContentPath(add_tree(content, kept).cid))

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (["shards", 0, "records"], 0, "greater than or equal to 1"),
            (["shards", 0, "records"], 6, "do not have 10 records"),
            (["shards", 0, "name"], "../x.tfrecord", "pattern"),
            (["shards", 0, "name"], "data-00001-of-00002.tfrecord", "twice"),
            (["features", 0, "encoding"], "float", "not carried as float"),
            (["features", 0, "dtype"], "object", "cannot be stored"),
            (["features", 0, "shape"], [1 << 40], "values in one record"),
            (["format"], "trainyard shards 2", "trainyard shards 1"),
        ],
        ids=str,
    )
    def test_index_that_cannot_be_is_refused(
        self, sharded: Sharded, path: list[Any], value: Any, message: str
    ) -> None:
        index = json.loads(sharded.index.encode())
        place = index
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

        with pytest.raises(DatasetError, match=message):
            Index.decode(json.dumps(index).encode(), "index.json")

    @pytest.mark.parametrize(
        "wrong", [[0, 5, 10, 15, 20], [0, 2**63, 1, 2, 3], [1, 100, 200, 300, 400]], ids=str
    )
    def test_offsets_that_cannot_be_are_refused(
        self, content: Content, files: dict[str, Any], wrong: list[int]
    ) -> None:
        name = "data-00000-of-00002.u64"
        right = np.frombuffer(files["offsets"][name], "<u8")
        offsets = np.array([*wrong, right[-1]], "<u8").tobytes()
        changed = {**files, "offsets": {**files["offsets"], name: offsets}}
        dataset = open_shards(content, ContentPath(add_tree(content, changed).cid))

        with pytest.raises(CorruptRecordError, match="no record can be"):
            dataset[0]

    def test_shard_with_fewer_records_than_its_index_says(
        self, content: Content, files: dict[str, Any]
    ) -> None:
        name = "data-00000-of-00002.tfrecord"
        whole = frame(bytes(len(files[name]) - 16))
        dataset = open_shards(content, ContentPath(add_tree(content, {**files, name: whole}).cid))

        with pytest.raises(CorruptRecordError, match=r"record 0: .*tf\.train\.Example"):
            list(dataset)

    def test_block_that_was_lost_names_its_cid(self, content: Content, sharded: Sharded) -> None:
        dataset = open_shards(content, ContentPath(sharded.cid))
        lost = content.stat(ContentPath(sharded.cid).child("data-00001-of-00002.tfrecord")).cid
        assert isinstance(content.store, EmbeddedStore)
        [held] = content.store.root.glob(f"blocks/*/{lost.digest.hex()}")
        held.unlink()

        with pytest.raises(UnavailableError, match=str(lost)):
            dataset[9]


def add_tree(content: Content, files: dict[str, Any]) -> Built:
    """A directory as a stranger may publish it."""
    with content.store.batch() as batch:

        def build(node: Any) -> Built:
            if isinstance(node, dict):
                return build_directory(
                    [(name, build(child)) for name, child in node.items()], batch.put
                )
            return build_file(io.BytesIO(node), batch.put)

        return build(files)
