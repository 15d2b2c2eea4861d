"""Sets of records that are damaged, or that are not what the manifest says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.sets import (
    FROM_DISK,
    IN_MEMORY,
    digits,
    numbers,
    save_folder,
    save_shards,
    source_of,
)
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.engine.data import Data, open_folder
from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


class TestArraysRefused:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return save_folder(tmp_path / "set", digits())

    @pytest.fixture(params=[IN_MEMORY, FROM_DISK], ids=["in memory", "from disk"])
    def opening(self, request: pytest.FixtureRequest, folder: Path) -> Callable[[], Data]:
        return lambda: open_folder(source_of("npz", digits()), folder, memory_bytes=request.param)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            (np.zeros((100, 8, 8), np.float32), r"float32\[8, 8\] where .* says uint8\[8, 8\]"),
            (np.zeros((100, 8, 9), np.uint8), r"uint8\[8, 9\] where .* says uint8\[8, 8\]"),
            (np.zeros((100, 64), np.uint8), r"uint8\[64\] where the manifest says uint8\[8, 8\]"),
            (np.zeros((99, 8, 8), np.uint8), "has 99 records where the manifest says 100"),
            (np.zeros((101, 8, 8), np.uint8), "has 101 records where the manifest says 100"),
            (np.zeros((0, 8, 8), np.uint8), "is empty where the manifest says 100 records"),
            (np.uint8(1), "is a single value"),
            (np.zeros(100, [("a", "u1")]), r"where the manifest says uint8\[8, 8\]"),
        ],
        ids=str,
    )
    def test_other_array_than_stated(
        self, folder: Path, opening: Callable[[], Data], wrong: Any, message: str
    ) -> None:
        np.save(folder / "image.npy", wrong)

        with pytest.raises(DataMismatchError, match=rf"image\.npy.*{message}"):
            opening()

    def test_pickle_of_a_stranger_is_not_run(
        self, folder: Path, opening: Callable[[], Data]
    ) -> None:
        np.save(folder / "image.npy", np.array([{}] * 100, object), allow_pickle=True)

        with pytest.raises(DataMismatchError, match=r"image\.npy holds Python objects"):
            opening()

    def test_missing_feature_is_named(self, folder: Path, opening: Callable[[], Data]) -> None:
        (folder / "image.npy").unlink()

        with pytest.raises(DataMismatchError, match=r"'image' is missing in .*, which has label"):
            opening()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda data: b"", "is empty where"),
            (lambda data: data[:-1], "is cut short: it has 6527 bytes where 6528 belong"),
            (lambda data: data + b"x", "is too long: it has 6529 bytes where 6528 belong"),
            (lambda data: data[:5], "is no array"),
            (lambda data: b"x" + data[1:], "is no array: the magic string is not correct"),
            (lambda data: data[:6] + b"\x09" + data[7:], "is no array: "),
            (lambda data: data[:8] + b"\xff\xff" + data[10:], "is no array: "),
        ],
    )
    def test_damaged_file(
        self,
        folder: Path,
        opening: Callable[[], Data],
        change: Callable[[bytes], bytes],
        message: str,
    ) -> None:
        path = folder / "image.npy"
        path.write_bytes(change(path.read_bytes()))

        with pytest.raises(DataError, match=rf"image\.npy {message}"):
            opening()

    def test_file_that_is_cut_while_it_is_read(self, folder: Path) -> None:
        data = open_folder(source_of("npz", digits()), folder, memory_bytes=FROM_DISK)
        with (folder / "image.npy").open("r+b") as file:
            file.truncate(128 + 64 * 50 + 3)

        assert len(data.batch(numbers(0, 49))["image"]) == 2
        for wanted in (numbers(3, 50), numbers(49, 50, 51)):
            with pytest.raises(CorruptDataError, match=r"ends at byte 3331, inside of record 50"):
                data.batch(wanted)

    def test_scattered_records_too_large_for_memory(self, folder: Path) -> None:
        np.save(folder / "image.npy", np.asfortranarray(digits()["image"]))

        with pytest.raises(DataError, match=r"'image' is too large for memory.*C order"):
            open_folder(source_of("npz", digits()), folder, memory_bytes=FROM_DISK)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"there is no data at .*nowhere"):
            open_folder(source_of("npz", digits()), tmp_path / "nowhere")


class TestArchivesRefused:
    def test_compressed_and_too_large(self, tmp_path: Path) -> None:
        np.savez_compressed(tmp_path / "a.npz", **digits())  # type: ignore[arg-type]

        with pytest.raises(DataError, match=r"a\.npz\[image\.npy\] is compressed.*numpy\.savez"):
            open_folder(source_of("npz", digits()), tmp_path / "a.npz", memory_bytes=FROM_DISK)

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"label": np.arange(100)}, "'image' is missing in .*, which has label"),
            ({**digits(), "image": np.zeros((100, 8, 9), np.uint8)}, r"uint8\[8, 9\] where"),
            (digits(99), "has 99 records where the manifest says 100"),
        ],
        ids=["missing", "shape", "records"],
    )
    def test_other_arrays_than_stated(
        self, tmp_path: Path, arrays: Any, message: str, memory_bytes: int
    ) -> None:
        np.savez(tmp_path / "a.npz", **arrays)

        with pytest.raises(DataMismatchError, match=message):
            open_folder(source_of("npz", digits()), tmp_path / "a.npz", memory_bytes=memory_bytes)

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_flipped_byte_is_found(self, tmp_path: Path, save: Callable[..., None]) -> None:
        path = tmp_path / "a.npz"
        save(path, **digits())
        damaged = bytearray(path.read_bytes())
        damaged[1_000] ^= 1
        path.write_bytes(damaged)

        with pytest.raises(CorruptDataError, match=r"a\.npz is no readable \.npz file: "):
            open_folder(source_of("npz", digits()), path)

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    def test_truncated(self, tmp_path: Path, memory_bytes: int) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, **digits())  # type: ignore[arg-type]
        path.write_bytes(path.read_bytes()[:-500])

        with pytest.raises(CorruptDataError, match="no readable"):
            open_folder(source_of("npz", digits()), path, memory_bytes=memory_bytes)


class TestShardsRefused:
    NAME = "data-00001-of-00003.tfrecord"

    @pytest.fixture
    def folder(self, content: Content, tmp_path: Path) -> Path:
        return save_shards(content, tmp_path / "set", digits())

    @pytest.mark.parametrize("memory_bytes", [IN_MEMORY, FROM_DISK])
    def test_corrupt_record_is_named(self, folder: Path, memory_bytes: int) -> None:
        path = folder / self.NAME
        damaged = bytearray(path.read_bytes())
        damaged[40] ^= 1
        path.write_bytes(damaged)
        source = source_of("tfrecord", digits())

        with pytest.raises(CorruptDataError, match=rf"{self.NAME}, record 0 at byte 0: .*checksum"):
            open_folder(source, folder, memory_bytes=memory_bytes).batch(numbers(0, 34, 35))
        if memory_bytes == FROM_DISK:
            data = open_folder(source, folder, memory_bytes=memory_bytes)
            assert len(data.batch(numbers(33, 35))["image"]) == 2

    @pytest.mark.parametrize(
        ("name", "size", "message"),
        [
            (NAME, 0, "is empty: it has 0 bytes where"),
            (NAME, 100, "is cut short: it has 100 bytes where"),
            ("offsets/data-00001-of-00003.u64", 8, r"u64 is cut short: it has 8 bytes where 272"),
        ],
    )
    def test_truncated(self, folder: Path, name: str, size: int, message: str) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

        with pytest.raises(CorruptDataError, match=message):
            open_folder(source_of("tfrecord", digits()), folder)

    def test_file_that_is_cut_while_it_is_read(self, folder: Path) -> None:
        data = open_folder(source_of("tfrecord", digits()), folder, memory_bytes=FROM_DISK)
        with (folder / self.NAME).open("r+b") as file:
            file.truncate(10)

        with pytest.raises(CorruptDataError, match=r"record 1 at byte .* cut short after 0 bytes"):
            data.batch(numbers(35))

    def test_offsets_where_no_record_can_be(self, folder: Path) -> None:
        path = folder / "offsets" / "data-00001-of-00003.u64"
        path.write_bytes(np.full(34, 2**63, "<u8").tobytes())

        with pytest.raises(CorruptDataError, match=r"record 0 of data-00001.* where none can be"):
            open_folder(source_of("tfrecord", digits()), folder)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            (digits(101), "index.json has 100 records where the manifest says 101"),
            ({**digits(), "image": np.zeros((100, 4), np.uint8)}, r"\[8, 8\] .* says uint8\[4\]"),
            ({"pixels": digits()["image"], "label": np.arange(100)}, "has image, label"),
        ],
        ids=["records", "shape", "name"],
    )
    def test_other_set_than_stated(self, folder: Path, arrays: Any, message: str) -> None:
        with pytest.raises(DataMismatchError, match=message):
            open_folder(source_of("tfrecord", arrays), folder)

    def test_shard_without_records(self, folder: Path) -> None:
        index = folder / "index.json"
        index.write_text(index.read_text().replace('"records": 33', '"records": 0', 1))

        with pytest.raises(DataError, match=r"shards\.\d\.records: .*greater than or equal to 1"):
            open_folder(source_of("tfrecord", digits()), folder)

    def test_missing_parts_are_named(self, folder: Path) -> None:
        for name in (self.NAME, "index.json"):
            (folder / name).unlink()
            with pytest.raises(DataError, match=rf"{name}: No such file"):
                open_folder(source_of("tfrecord", digits()), folder)
