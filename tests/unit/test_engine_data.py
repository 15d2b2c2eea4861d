"""Records by number: what comes back, from where, and at what cost."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.sets import (
    COUNT,
    FROM_DISK,
    IN_MEMORY,
    Arrays,
    digits,
    numbers,
    same,
    save_folder,
    save_shards,
    source_of,
)
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import add_arrays, open_shards, write_shards
from trainyard.datasets.index import INDEX_NAME, OFFSETS_NAME, Index
from trainyard.engine.data import Data, open_data, open_folder, prefetch
from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError
from trainyard.engine.order import Numbers, Order

SCATTERED = numbers(99, 0, 5, 5, 42, 98)


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


class TestByAddress:
    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    def test_folder_of_arrays(self, content: Content, tmp_path: Path, memory_bytes: int) -> None:
        arrays = digits()
        source = source_of("npz", arrays, add_arrays(content, arrays).cid)

        data = open_data(source, content, tmp_path / "scratch", memory_bytes=memory_bytes)

        assert data.in_memory == (memory_bytes > 0)
        assert len(data) == COUNT
        assert same(data.batch(SCATTERED), arrays, SCATTERED)

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    def test_shards(self, content: Content, tmp_path: Path, memory_bytes: int) -> None:
        arrays = digits()
        sharded = write_shards(content, arrays, shards=7, seed=3)
        source = source_of("tfrecord", arrays, sharded.cid)

        data = open_data(source, content, tmp_path / "scratch", memory_bytes=memory_bytes)

        origins = open_shards(content, ContentPath(sharded.cid)).origins()
        assert same(data.batch(SCATTERED), arrays, origins[SCATTERED])

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    def test_archive_below_a_folder(
        self, content: Content, tmp_path: Path, memory_bytes: int
    ) -> None:
        arrays = digits()
        (tmp_path / "sets").mkdir()
        np.savez(tmp_path / "sets" / "digits.npz", **arrays)  # type: ignore[arg-type]
        root = content.add(tmp_path / "sets").cid
        source = source_of("npz", arrays, f"ipfs://{root}/digits.npz")

        data = open_data(source, content, tmp_path / "scratch", memory_bytes=memory_bytes)

        assert same(data.batch(SCATTERED), arrays, SCATTERED)

    def test_both_kinds_give_the_same_batches(self, content: Content, tmp_path: Path) -> None:
        arrays = digits()
        sharded = write_shards(content, arrays, shards=4, seed=2)
        origins = open_shards(content, ContentPath(sharded.cid)).origins()
        dealt = {name: values[origins] for name, values in arrays.items()}
        sources = [
            source_of("npz", arrays, add_arrays(content, dealt).cid),
            source_of("tfrecord", arrays, sharded.cid),
        ]
        sets = [
            open_data(source, content, tmp_path / "scratch", memory_bytes=memory_bytes)
            for source in sources
            for memory_bytes in (IN_MEMORY, FROM_DISK)
        ]

        for batch in Order(8, COUNT).records_between(0, 10, 32):
            for data in sets:
                assert same(data.batch(batch), dealt, batch)

    def test_what_training_does_not_read_is_not_fetched(
        self, content: Content, tmp_path: Path
    ) -> None:
        arrays = digits()
        built = add_arrays(content, {**arrays, "huge": np.zeros((9, 9))})

        open_data(source_of("npz", arrays, built.cid), content, tmp_path / "scratch")

        kept = {path.name for path in (tmp_path / "scratch" / str(built.cid)).iterdir()}
        assert kept == {"image.npy", "label.npy"}

    def test_damaged_copy_is_fetched_anew(self, content: Content, tmp_path: Path) -> None:
        arrays = digits()
        source = source_of("npz", arrays, add_arrays(content, arrays).cid)
        open_data(source, content, tmp_path)
        [copy] = tmp_path.glob("*/label.npy")
        copy.write_bytes(bytes(copy.stat().st_size))

        data = open_data(source, content, tmp_path)

        assert same(data.batch(SCATTERED), arrays, SCATTERED)

    def test_many_may_fetch_the_same_at_once(self, content: Content, tmp_path: Path) -> None:
        arrays = digits()
        source = source_of("tfrecord", arrays, write_shards(content, arrays, shards=5, seed=0).cid)

        with ThreadPoolExecutor(4) as pool:
            opened = [pool.submit(open_data, source, content, tmp_path / "scratch") for _ in "1234"]

        first, *others = [future.result().batch(SCATTERED) for future in opened]
        everything = np.arange(len(SCATTERED))
        assert all(same(other, first, everything) for other in others)

    def test_longer_file_than_stated_is_not_fetched(self, content: Content, tmp_path: Path) -> None:
        arrays = digits(5_000)
        source = source_of("npz", arrays, add_arrays(content, arrays).cid, records=10)

        with pytest.raises(CorruptDataError, match=r"image\.npy has the wrong length: .* 320128"):
            open_data(source, content, tmp_path / "scratch")

        assert not list(tmp_path.glob("scratch/*/*"))

    def test_shards_of_another_schema_are_not_fetched(
        self, content: Content, tmp_path: Path
    ) -> None:
        sharded = write_shards(content, digits(), shards=2, seed=0)
        source = source_of("tfrecord", digits(99), sharded.cid)

        with pytest.raises(DataMismatchError, match="has 100 records where the manifest says 99"):
            open_data(source, content, tmp_path / "scratch")

        assert not list(tmp_path.glob("scratch/*/*.tfrecord"))

    @pytest.mark.parametrize("kind", ["npz", "tfrecord"])
    def test_folder_without_the_files_is_refused(
        self, content: Content, tmp_path: Path, kind: str
    ) -> None:
        built = add_arrays(content, {"other": np.zeros(3)})

        with pytest.raises(DataError, match=r"'image' is missing in .* has other|index\.json is m"):
            open_data(source_of(kind, digits(), built.cid), content, tmp_path / "scratch")


class TestValues:
    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    @pytest.mark.parametrize("kind", ["npz", "tfrecord"])
    def test_every_type_comes_back(
        self, content: Content, tmp_path: Path, kind: str, memory_bytes: int
    ) -> None:
        random = np.random.default_rng(0)
        arrays: Arrays = {
            name: random.integers(0, 256, (40, 3, np.dtype(name).itemsize), dtype=np.uint8)
            .view(name)
            .reshape(40, 3)
            for name in ("int8", "uint16", "int16", "int32", "int64", "float16", "float64")
        }
        arrays["bool"] = random.integers(0, 2, 40).astype(bool)
        # Integers that take one byte, two, or ten, and more forms than are kept.
        arrays["mixed"] = np.where(
            random.random((40, 4)) < 0.3, -1, random.integers(0, 300, (40, 4))
        )
        arrays["scalar"] = random.integers(0, 256, 40, dtype=np.uint8)
        arrays["floats"] = np.array([[np.nan, np.inf], [-0.0, 1.5]] * 20, np.float32)
        arrays["target"] = np.arange(40)
        folder = tmp_path / "set"
        if kind == "npz":
            save_folder(folder, arrays)
            origins = np.arange(40)
        else:
            sharded = write_shards(content, arrays, shards=3, seed=1)
            content.get(ContentPath(sharded.cid), folder)
            origins = open_shards(content, ContentPath(sharded.cid)).origins()

        data = open_folder(source_of(kind, arrays), folder, memory_bytes=memory_bytes)

        for wanted in (np.arange(40), numbers(3, 39, 0), numbers(7), numbers()):
            assert same(data.batch(wanted), arrays, origins[wanted])

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_archive_in_memory(self, tmp_path: Path, save: Callable[..., None]) -> None:
        arrays = digits()
        save(tmp_path / "a.npz", **arrays)

        data = open_folder(source_of("npz", arrays), tmp_path / "a.npz")

        assert same(data.batch(SCATTERED), arrays, SCATTERED)

    @pytest.mark.parametrize("name", ["folder", "archive.npz"])
    def test_other_layouts_are_read_as_they_are_meant(self, tmp_path: Path, name: str) -> None:
        arrays = {
            "image": np.asfortranarray(np.arange(600.0).reshape(100, 2, 3)),
            "label": np.arange(100, dtype=">i8"),
        }
        if name == "folder":
            save_folder(tmp_path / name, arrays)
        else:
            np.savez(tmp_path / name, **arrays)  # type: ignore[arg-type]

        data = open_folder(source_of("npz", arrays), tmp_path / name)

        assert same(data.batch(SCATTERED), arrays, SCATTERED)
        assert data.batch(SCATTERED)["image"].flags.c_contiguous

    def test_features_that_are_not_used_are_left_alone(
        self, content: Content, tmp_path: Path
    ) -> None:
        arrays = digits()
        extra = {**arrays, "text": np.array(["é"] * COUNT), "more": np.arange(COUNT) * 1_000}
        data = open_folder(
            source_of("tfrecord", arrays), save_shards(content, tmp_path / "set", extra)
        )

        assert sorted(data.batch(SCATTERED)) == ["image", "label"]

    def test_batch_is_the_callers_to_change(self, tmp_path: Path) -> None:
        arrays = digits()
        data = open_folder(source_of("npz", arrays), save_folder(tmp_path / "set", arrays))

        data.batch(SCATTERED)["image"][:] = 0

        assert same(data.batch(SCATTERED), arrays, SCATTERED)

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    @pytest.mark.parametrize("number", [-1, COUNT])
    def test_record_that_is_not_there(self, tmp_path: Path, number: int, memory_bytes: int) -> None:
        arrays = digits()
        folder = save_folder(tmp_path / "set", arrays)
        data = open_folder(source_of("npz", arrays), folder, memory_bytes=memory_bytes)

        with pytest.raises(IndexError, match=f"record {number} of {COUNT}"):
            data.batch(numbers(3, number))


class TestPrefetch:
    @pytest.fixture
    def data(self, tmp_path: Path) -> Data:
        return open_folder(source_of("npz", digits()), save_folder(tmp_path / "set", digits()))

    def test_batches_come_in_order(self, data: Data) -> None:
        steps = Order(1, COUNT).records_between(0, 30, 16)

        batches = list(prefetch(data, steps))

        assert [batch["label"].tolist() for batch in batches] == steps.tolist()
        assert threads() == 0

    def test_error_comes_after_what_was_read_before_it(self, data: Data) -> None:
        batches = prefetch(data, [numbers(1), numbers(2), numbers(COUNT), numbers(3)])

        assert [next(batches)["label"].tolist() for _ in range(2)] == [[1], [2]]
        with pytest.raises(IndexError, match="record 100 of 100"):
            next(batches)
        assert threads() == 0

    def test_no_more_is_read_ahead_than_asked(self, data: Data) -> None:
        asked: list[int] = []
        third = threading.Event()

        def wanted() -> Iterator[Numbers]:
            for number in range(COUNT):
                asked.append(number)
                if number == 3:
                    third.set()
                yield numbers(number)

        with closing(prefetch(data, wanted(), depth=2)) as batches:
            next(batches)
            assert third.wait(30)
        # One handed over, two read, and one that waits for room.
        assert asked == [0, 1, 2, 3]

    @pytest.mark.parametrize("end", ["close", "drop", "raise"])
    def test_thread_ends_with_its_consumer(self, data: Data, end: str) -> None:
        batches: Any = prefetch(data, (numbers(1) for _ in range(10**9)))
        next(batches)
        assert threads() == 1

        if end == "close":
            batches.close()
        elif end == "drop":
            del batches
        else:
            with pytest.raises(RuntimeError):
                batches.throw(RuntimeError)

        assert threads() == 0

    def test_depth_of_nothing_is_refused(self, data: Data) -> None:
        with pytest.raises(ValueError, match="at least one batch is read ahead, not 0"):
            prefetch(data, [], depth=0)


def threads() -> int:
    return sum(thread.name == "trainyard-prefetch" for thread in threading.enumerate())


STREAM = """
import sys
from pathlib import Path
from trainyard.engine.data import open_folder, prefetch
from trainyard.engine.order import Order
from trainyard.protocol.manifest import Source

def peak():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024

source = Source.model_validate_json(sys.argv[1])
before = peak()
data = open_folder(source, Path(sys.argv[2]), memory_bytes=64 << 20)
order = Order(1, source.records)
steps = order.records_between(0, source.records // 16, 16)
total = sum(int(batch["label"].sum()) for batch in prefetch(data, steps))
print(data.in_memory, total, peak() - before)
"""


def repeat_shards(folder: Path, times: int) -> None:
    """Make the set so many times as large; each shard has as many names, and one file."""
    index = Index.decode((folder / INDEX_NAME).read_bytes(), "the set")
    shards = []
    for number in range(times):
        for shard in index.shards:
            named = shard.model_copy(update={"name": f"{number}-{shard.name}"})
            os.link(folder / shard.name, folder / named.name)
            offsets = folder / OFFSETS_NAME
            os.link(offsets / shard.offsets_name, offsets / named.offsets_name)
            shards.append(named)
    larger = {"records": times * index.records, "shards": tuple(shards)}
    (folder / INDEX_NAME).write_bytes(index.model_copy(update=larger).encode())


@pytest.mark.parametrize("kind", ["npz", "tfrecord"])
def test_set_larger_than_memory_is_streamed(content: Content, tmp_path: Path, kind: str) -> None:
    """5 GB, of which 64 MB may be taken."""
    folder = tmp_path / "set"
    count, times = (80_000, 1) if kind == "npz" else (1_600, 50)
    arrays: Arrays = {
        "image": np.broadcast_to(np.uint8(1), (count, 64 << 10)),
        "label": np.arange(count),
    }
    if kind == "npz":
        folder.mkdir()
        # A file with holes: as large to its reader, and made at once.
        np.lib.format.open_memmap(
            folder / "image.npy", mode="w+", dtype=np.uint8, shape=arrays["image"].shape
        ).flush()
        np.save(folder / "label.npy", arrays["label"])
    else:
        repeat_shards(save_shards(content, folder, arrays), times)
    source = source_of(kind, arrays, records=times * count)

    done = subprocess.run(
        [sys.executable, "-c", STREAM, source.model_dump_json(), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )

    in_memory, total, grown_mb = done.stdout.split()
    assert (in_memory, int(total)) == ("False", times * (count * (count - 1) // 2))
    assert int(grown_mb) < 64
