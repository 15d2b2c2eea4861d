"""RDDs and DataFrames as data sets in content, by real executors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from tests.spark.conftest import HEAP_BYTES, World
from tests.spark.records import NAMES, SHAPES, TYPES, record
from trainyard.content.cid import Cid, Codec
from trainyard.content.names import ContentPath
from trainyard.content.settings import ContentSettings
from trainyard.datasets import ShardedDataset, open_shards
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.market import Market
from trainyard.spark import TFDataset
from trainyard.spark.errors import ExecutorError, RecordError
from trainyard.spark.failing import explained
from trainyard.spark.fields import Fields
from trainyard.spark.writing import PartitionWriter


def opened(world: World, dataset: TFDataset) -> ShardedDataset:
    return open_shards(world.market.content, ContentPath.parse(dataset.cid))


def test_records_stand_in_the_order_of_the_rdd(world: World) -> None:
    # Partitions of unlike lengths, some of them empty.
    numbers = world.context.parallelize(range(100), 7).filter(lambda n: n < 20 or n > 55)
    rdd = numbers.map(record)

    dataset = TFDataset.from_rdd(rdd, NAMES, SHAPES, TYPES, 8, market=world.market, shard_bytes=400)

    found = opened(world, dataset)
    assert [int(one["y"]) for one in found] == [*range(20), *range(56, 100)]
    assert [one["x"].tolist() for one in found][20] == [56.0, 56.0, 56.0]
    assert found.origins().tolist() == list(range(64))
    # Both are cut: partitions by their ends, and shards by their bytes.
    assert len(found.index.shards) > 7
    assert max(shard.bytes for shard in found.index.shards) < 500
    assert (len(dataset), dataset.batch_size, dataset.target) == (64, 8, "y")


def test_equal_records_have_one_cid_and_it_is_pinned(world: World) -> None:
    rdd = world.context.parallelize(range(10), 2).map(record)

    first = TFDataset.from_rdd(rdd, NAMES, SHAPES, TYPES, market=world.market)
    second = TFDataset.from_rdd(
        rdd.map(lambda one: {"y": one[1], "x": one[0]}), NAMES, SHAPES, TYPES, market=world.market
    )

    assert first.cid == second.cid
    assert Cid.parse(first.cid) in world.market.content.store.pins()
    same = TFDataset.from_cid(first.cid, ["x", "y"], 5, market=world.market)
    assert (same.index, same.target) == (first.index, "y")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([np.zeros(4, np.float32), 1], r"'x' has the shape \[4\], and \[3\] was said"),
        ([np.zeros(3, np.float32), 1.5], r"'y' holds float64, and int64 was said"),
        ([np.zeros(3, np.float32)], r"it has 1 values, and 2 are named: x, y"),
        ([[1, [2], 3], 1], r"'x' is ragged"),
        ([[1, 2, 3], None], r"'y' is null"),
    ],
)
def test_a_record_that_does_not_fit_is_named(world: World, bad: Any, words: str) -> None:
    before = world.market.content.store.pins()

    def spoilt(number: int) -> Any:
        return bad if number == 17 else record(number)

    with pytest.raises(RecordError, match=rf"^partition 1, record 7: {words}"):
        TFDataset.from_rdd(
            world.context.parallelize(range(20), 2).map(spoilt),
            NAMES,
            SHAPES,
            TYPES,
            market=world.market,
        )

    assert world.market.content.store.pins() == before


def test_what_is_no_data_set_is_refused(world: World) -> None:
    rdd = world.context.parallelize(range(4), 2).map(record)

    with pytest.raises(RefusedError, match="there are no records in the RDD"):
        TFDataset.from_rdd(rdd.filter(lambda _: False), NAMES, SHAPES, TYPES, market=world.market)
    with pytest.raises(RefusedError, match="'x' is there twice"):
        TFDataset.from_rdd(rdd, ["x", "x"], SHAPES, TYPES, market=world.market)
    with pytest.raises(RefusedError, match="'z' is none of the names 'x', 'y'"):
        TFDataset.from_rdd(rdd, NAMES, SHAPES, TYPES, target="z", market=world.market)


def test_an_error_of_the_users_own_stays_what_it_is(world: World) -> None:
    rdd = world.context.parallelize([1, 0]).map(lambda number: [np.ones(3), 1 // number])

    with pytest.raises(Exception, match="ZeroDivisionError"):
        TFDataset.from_rdd(rdd, NAMES, SHAPES, TYPES, market=world.market)


def test_an_executor_with_another_store_says_so(world: World, tmp_path: Path) -> None:
    probe = Cid.of(Codec.RAW, b"what the driver has put into its store")
    fields = Fields.of(NAMES, SHAPES, TYPES)
    rdd = world.context.parallelize(range(4), 2).map(record)
    other = tmp_path / "other"
    other.mkdir()

    def tried(settings: ContentSettings) -> str:
        writer = PartitionWriter(settings, fields, probe, 1 << 20)
        with pytest.raises(ExecutorError) as found, explained():
            rdd.mapPartitionsWithIndex(writer).collect()
        return str(found.value)

    missing = tried(ContentSettings(store=tmp_path / "nowhere", kubo=None))
    assert f"there is no folder {tmp_path / 'nowhere'}" in missing
    assert "all machines need one store" in missing
    assert not (tmp_path / "nowhere").exists()
    foreign = tried(ContentSettings(store=other, kubo=None))
    assert f"its store {other} is not the one of the driver" in foreign
    # Nobody listens there.
    assert "127.0.0.1:9" in tried(ContentSettings(store=other, kubo="http://127.0.0.1:9"))


def test_a_store_that_only_the_driver_reaches_is_found_out(world: World, tmp_path: Path) -> None:
    """As where a folder is not mounted on the executors: here they are told another one."""

    place = world.market.place
    lone = Market(replace(place, content=ContentSettings(store=tmp_path / "own", kubo=None)))
    with lone:
        assert lone.content.store.pins() == frozenset()
        lone.place = replace(place, content=ContentSettings(store=tmp_path / "not", kubo=None))
        rdd = world.context.parallelize(range(4), 2).map(record)
        with pytest.raises(ExecutorError, match="there is no folder"):
            TFDataset.from_rdd(rdd, NAMES, SHAPES, TYPES, market=lone)


def test_columns_of_a_dataframe_become_features(world: World) -> None:
    session = SparkSession(world.context)
    rows = [
        (number, float(number), [number] * 4, Vectors.dense([number, 2.0]), bytes([number] * 6), 7)
        for number in range(6)
    ]
    names = ["count", "weight", "grid", "vector", "image", "label"]
    df = session.createDataFrame(world.context.parallelize(rows, 3), names).withColumnRenamed(
        "label", "class"
    )

    dataset = TFDataset.from_dataframe(
        df,
        shapes=[[], [], [2, 2], [2], [1, 6], []],
        batch_size=2,
        target="class",
        market=world.market,
    )

    found = opened(world, dataset)
    kinds = {one.name: (one.dtype, one.shape) for one in found.index.features}
    assert kinds == {
        "count": ("int64", ()),
        "weight": ("float32", ()),
        "grid": ("int64", (2, 2)),
        "vector": ("float32", (2,)),
        "image": ("uint8", (1, 6)),
        "class": ("int64", ()),
    }
    assert [int(one["count"]) for one in found] == list(range(6))
    assert found[3]["vector"].tolist() == [3.0, 2.0]
    assert found[5]["image"].tolist() == [[5] * 6]
    with pytest.raises(RefusedError, match=r"no column 'size'; there are 'count', 'weight'"):
        TFDataset.from_dataframe(df, ["size"], market=world.market)
    with pytest.raises(RefusedError, match=r"'grid' is of array<bigint>, whose length"):
        TFDataset.from_dataframe(df, ["grid"], market=world.market)


RECORD_BYTES = 1 << 20
RECORDS = HEAP_BYTES // RECORD_BYTES + 64


def test_more_than_the_heap_holds_goes_straight_to_content(world: World) -> None:
    """Records are made and written in the executors' Python: the driver hears of shards alone."""

    def large(number: int) -> list[Any]:
        values = np.random.default_rng(number).integers(0, 256, RECORD_BYTES, np.uint8)
        return [values, number]

    rdd = world.context.parallelize(range(RECORDS), 2).map(large)
    with watched() as most:
        dataset = TFDataset.from_rdd(
            rdd, NAMES, [[RECORD_BYTES], []], ["uint8", "int64"], market=world.market
        )

    found = opened(world, dataset)
    assert sum(shard.bytes for shard in found.index.shards) > HEAP_BYTES
    assert [int(found[number]["y"]) for number in (0, RECORDS - 1)] == [0, RECORDS - 1]
    np.testing.assert_array_equal(found[300]["x"], large(300)[0])
    # Of 288 MB a partition.
    assert most["driver"] < 64 << 20
    assert most["executor"] < 192 << 20


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """The most that this process grew by meanwhile, and the most that an executor's Python had."""
    own = psutil.Process()
    before = own.memory_info().rss
    most, is_over = {"driver": 0, "executor": 0}, threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            most["driver"] = max(most["driver"], own.memory_info().rss - before)
            for child in own.children(recursive=True):
                try:
                    if "pyspark.daemon" in child.cmdline():
                        most["executor"] = max(most["executor"], child.memory_info().rss)
                except psutil.Error:
                    continue

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        is_over.set()
        watcher.join()
