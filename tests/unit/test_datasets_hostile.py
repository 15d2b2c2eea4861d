"""Data sets that say they are huge: a few blocks, named again and again, can make them so."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trainyard.content.build import build_directory, build_file
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.dag import Link
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.limits import MIB
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built, Put, put_node
from trainyard.content.unixfs import Kind, UnixFs
from trainyard.datasets import load_arrays, open_shards, write_shards
from trainyard.datasets.errors import CorruptRecordError, DatasetError
from trainyard.datasets.index import INDEX_NAME, OFFSETS_NAME, Index, shard_name

NAME = shard_name(0, 1)
RECORDS = (1 << 26) - 1


class CountingStore(EmbeddedStore):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fetched_bytes = 0

    def fetch(self, cid: Cid) -> bytes:
        block = super().fetch(cid)
        self.fetched_bytes += len(block)
        return block


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "store")


@pytest.fixture
def content(store: CountingStore) -> Iterator[Content]:
    opened = Content(store)
    yield opened
    opened.close()


def padded(put: Put, first: bytes, mebibytes: int) -> Built:
    """A file that begins with `first` and goes on with the same block of zeros to its end."""
    leaves = []
    for block in (first.ljust(MIB, b"\0"), bytes(MIB)):
        leaves.append(Cid.of(Codec.RAW, block))
        put(leaves[-1], block)
    cids = [leaves[0], *[leaves[1]] * (mebibytes - 1)]
    size = mebibytes * MIB
    about = UnixFs(Kind.FILE, file_size=size, block_sizes=(MIB,) * mebibytes)
    return put_node(put, [Link(cid, "", MIB) for cid in cids], about, size)


def bomb(content: Content, offsets: list[int]) -> ContentPath:
    """A data set of one record that says it has 67 million, in a gibibyte."""
    sharded = write_shards(content, {"x": np.arange(1)}, shards=1, seed=0)
    record = b"".join(content.cat(ContentPath(sharded.cid, (NAME,))))
    document = json.loads(sharded.index.encode())
    document["records"] = document["shards"][0]["records"] = RECORDS
    document["shards"][0]["bytes"] = 1024 * MIB
    with content.store.batch() as batch:
        index = build_file(io.BytesIO(json.dumps(document).encode()), batch.put)
        places = padded(batch.put, np.array(offsets, "<u8").tobytes(), 512)
        folder = build_directory([(NAME.replace(".tfrecord", ".u64"), places)], batch.put)
        files = [
            (INDEX_NAME, index),
            (NAME, padded(batch.put, record, 1024)),
            (OFFSETS_NAME, folder),
        ]
        return ContentPath(build_directory(files, batch.put).cid)


def test_one_record_costs_a_few_blocks_however_many_there_are(
    content: Content, store: CountingStore
) -> None:
    record_bytes = write_shards(content, {"x": np.arange(1)}, shards=1, seed=0).index.shards[0]
    dataset = open_shards(content, bomb(content, [0, record_bytes.bytes]))
    store.fetched_bytes = 0

    assert dataset[0]["x"] == 0

    assert store.fetched_bytes < 4 * MIB


@pytest.mark.parametrize("number", [1, 5000, RECORDS - 1])
def test_places_where_no_record_can_be_are_refused_without_a_look_at_the_others(
    content: Content, store: CountingStore, number: int
) -> None:
    dataset = open_shards(content, bomb(content, [0, 50]))
    store.fetched_bytes = 0

    with pytest.raises(CorruptRecordError, match=f"record {number} a place where no record can be"):
        dataset[number]

    assert store.fetched_bytes < 4 * MIB


def test_origins_of_too_many_records_are_computed_only_on_request(content: Content) -> None:
    small = open_shards(
        content, ContentPath(write_shards(content, {"x": np.arange(9)}, shards=2, seed=1).cid)
    )

    with pytest.raises(DatasetError, match="9 records; origins are computed for 8 at most"):
        small.origins(most=8)
    huge = open_shards(content, bomb(content, [0]))
    with pytest.raises(DatasetError, match=f"says it has {RECORDS} records"):
        huge.origins()
    assert sorted(small.origins()) == list(range(9))


def test_an_index_with_more_records_than_its_bytes_can_hold_is_refused(content: Content) -> None:
    index = json.loads(write_shards(content, {"x": np.arange(1)}, shards=1, seed=0).index.encode())
    index["shards"][0]["bytes"] = 15

    with pytest.raises(DatasetError, match="cannot have 1 records in 15 bytes"):
        Index.decode(json.dumps(index).encode(), "index.json")


# --- Arrays


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def arrays_of(content: Content, **files: bytes) -> ContentPath:
    with content.store.batch() as batch:
        built = [
            (f"{name}.npy", build_file(io.BytesIO(data), batch.put)) for name, data in files.items()
        ]
        return ContentPath(build_directory(built, batch.put).cid)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ("(1099511627776,)", "needs 8796093022208 bytes, and 8 are there"),
        ("(4294967296, 4294967296)", "needs 147573952589676412928 bytes, and 8 are there"),
        ("(2,)", "needs 16 bytes, and 8 are there"),
        ("(-1, -5)", "needs 40 bytes"),
        ("(" * 500, "header cannot be read"),
        ("-" * 9000 + "1", "header cannot be read"),
    ],
    ids=["huge", "wraps", "short", "negative", "nested", "deep"],
)
def test_an_array_larger_than_its_file_is_refused_before_it_has_memory(
    content: Content, shape: str, why: str
) -> None:
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}\n"
    path = arrays_of(content, x=header(text) + bytes(8))

    with pytest.raises(DatasetError, match=rf"x\.npy is no array: .*{why}"):
        load_arrays(content, path)


def test_arrays_of_too_many_bytes_are_loaded_only_on_request(
    content: Content, store: CountingStore
) -> None:
    saved = io.BytesIO()
    np.save(saved, np.arange(20))
    path = arrays_of(content, x=saved.getvalue(), y=saved.getvalue())

    with pytest.raises(DatasetError, match="take 576 bytes; 575 are loaded at most"):
        load_arrays(content, path, most_bytes=575)
    assert sorted(load_arrays(content, path, most_bytes=576)) == ["x", "y"]


def test_an_array_of_one_block_named_again_and_again_is_refused(
    content: Content, store: CountingStore
) -> None:
    """Five gibibytes as they are stated, in two blocks."""
    text = "{'descr': '|u1', 'fortran_order': False, 'shape': (5368709000,)}\n"
    with content.store.batch() as batch:
        files = [("x.npy", padded(batch.put, header(text), 5 * 1024))]
        path = ContentPath(build_directory(files, batch.put).cid)
    store.fetched_bytes = 0

    with pytest.raises(DatasetError, match="take 5368709120 bytes"):
        load_arrays(content, path)

    assert store.fetched_bytes < 4 * MIB
