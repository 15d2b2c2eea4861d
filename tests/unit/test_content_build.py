"""Files and directories as DAGs, and back."""

import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.shelves import Blocks, file_of, read, walk_over
from trainyard.content.build import LINKS_PER_NODE, build_directory, build_file
from trainyard.content.chunking import Chunker, FixedChunker, GearChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.errors import InvalidPathError, NotFoundError
from trainyard.content.hamt import name_hash
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built
from trainyard.content.reading import EntryKind
from trainyard.content.unixfs import Kind, decode_unixfs

chunkers = st.integers(1, 64).map(FixedChunker) | st.just(GearChunker(1024))


def depth_of(blocks: Blocks, cid: Cid) -> int:
    if cid.codec is Codec.RAW:
        return 0
    return 1 + max(depth_of(blocks, link.cid) for link in decode_node(blocks[cid]).links)


def files(count: int) -> tuple[list[tuple[str, Built]], Blocks]:
    """So many files of a few bytes each."""
    blocks: Blocks = {}
    entries = []
    for number in range(count):
        built, parts = file_of(f"content {number}".encode())
        blocks |= parts
        entries.append((f"file {number:05}", built))
    return entries, blocks


@given(st.binary(max_size=20_000), chunkers)
def test_any_bytes_come_back_whatever_cuts_them(data: bytes, chunker: Chunker) -> None:
    built, blocks = file_of(data, chunker)

    assert read(blocks, built.cid) == data
    assert built.size == len(data)


@given(st.binary(min_size=1, max_size=4000), st.integers(1, 50), st.data())
def test_any_range_is_what_a_slice_gives(data: bytes, chunk: int, draw: st.DataObject) -> None:
    built, blocks = file_of(data, FixedChunker(chunk))
    offset = draw.draw(st.integers(0, len(data) + 10))
    length = draw.draw(st.integers(0, len(data) + 10))

    pieces = list(walk_over(blocks).read(built.cid, offset, length))

    assert b"".join(bytes(piece.data) for piece in pieces) == data[offset : offset + length]
    assert [piece.offset for piece in pieces] == sorted({piece.offset for piece in pieces})


@pytest.mark.parametrize(
    ("chunks", "depth"),
    [
        (1, 0),
        (2, 1),
        (LINKS_PER_NODE, 1),
        (LINKS_PER_NODE + 1, 2),
        (LINKS_PER_NODE**2, 2),
        (LINKS_PER_NODE**2 + 1, 3),
    ],
)
def test_the_tree_is_as_deep_as_it_must(chunks: int, depth: int) -> None:
    data = random.Random(1).randbytes(chunks)

    built, blocks = file_of(data, FixedChunker(1))

    assert depth_of(blocks, built.cid) == depth
    assert built.size == chunks


def test_one_chunk_is_its_own_root() -> None:
    built, blocks = file_of(b"small")

    assert built.cid == Cid.of(Codec.RAW, b"small")
    assert list(blocks) == [built.cid]


def test_the_same_block_is_named_once() -> None:
    _, blocks = file_of(bytes(64 * 100))

    assert len(blocks) == 2


@pytest.mark.parametrize("count", [0, 1, 3, 6000])
def test_a_directory_lists_what_went_in(count: int) -> None:
    """6,000 names are more than one node takes: then it is sharded."""
    entries, blocks = files(count)
    built = build_directory(entries, blocks.__setitem__)
    walk = walk_over(blocks)

    about = decode_unixfs(decode_node(blocks[built.cid]).data)
    assert about.kind is (Kind.HAMT_SHARD if count == 6000 else Kind.DIRECTORY)
    listed = {entry.name: entry.cid for entry in walk.ls(built.cid)}
    assert listed == {name: child.cid for name, child in entries}


def test_every_name_is_found_in_a_sharded_directory() -> None:
    entries, blocks = files(6000)
    built = build_directory(entries, blocks.__setitem__)
    walk = walk_over(blocks)

    for name, child in entries[::97]:
        assert walk.stat(ContentPath(built.cid, (name,))).cid == child.cid
    for absent in ("file", "file 06000", "", "file 00000 "):
        with pytest.raises(NotFoundError, match="there is no"):
            walk.stat(ContentPath(built.cid, (absent,)))


def test_the_order_of_entries_does_not_matter() -> None:
    for count in (20, 6000):
        entries, blocks = files(count)

        first = build_directory(entries, blocks.__setitem__)

        assert build_directory(reversed(entries), blocks.__setitem__) == first


def test_a_directory_counts_its_bytes() -> None:
    entries, blocks = files(10)
    inner = build_directory(entries, blocks.__setitem__)
    outer = build_directory([("inner", inner)], blocks.__setitem__)

    assert outer.size == sum(child.size for _, child in entries)
    assert outer.total_bytes == sum(len(block) for block in blocks.values())
    assert walk_over(blocks).stat(ContentPath(outer.cid)).kind is EntryKind.DIRECTORY


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "n" * 256])
def test_unusable_names_do_not_get_in(name: str) -> None:
    built, blocks = file_of(b"x")

    with pytest.raises(InvalidPathError):
        build_directory([(name, built)], blocks.__setitem__)


def test_a_name_stands_once() -> None:
    built, blocks = file_of(b"x")

    with pytest.raises(ValueError, match="twice"):
        build_directory([("a", built), ("a", built)], blocks.__setitem__)


def test_name_hash_is_murmur3_of_64_bits() -> None:
    """From the reference implementation: the first half of x64_128 with seed 0."""
    assert name_hash("").hex() == "0000000000000000"
    assert name_hash("hello").hex() == "cbd8a7b341bd9b02"


def test_progress_counts_every_byte() -> None:
    seen: list[int] = []
    build_file(io.BytesIO(bytes(1000)), lambda cid, block: None, FixedChunker(64), seen.append)

    assert sum(seen) == 1000
