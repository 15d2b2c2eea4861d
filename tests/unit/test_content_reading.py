"""Walks over content that a stranger wrote: valid hashes, and lies in what they name."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.shelves import Blocks, Shelf, file_of, node, raw, read, walk_over
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec, HashFunction
from trainyard.content.dag import Link, encode_node
from trainyard.content.errors import (
    InvalidPathError,
    IsADirectoryContentError,
    LimitExceededError,
    MalformedBlockError,
    NotADirectoryContentError,
    UnavailableError,
)
from trainyard.content.fetching import DirectFeed, Fetcher
from trainyard.content.hamt import name_hash
from trainyard.content.limits import Limits
from trainyard.content.names import ContentPath
from trainyard.content.reading import Walk
from trainyard.content.unixfs import HAMT_MURMUR3, HAMT_WIDTH, Kind, UnixFs


def linked(kind: Kind, *children: tuple[str, Cid, int]) -> tuple[Cid, bytes]:
    """A node whose children have the sizes that it claims."""
    sizes = tuple(size for _, _, size in children) if kind is Kind.FILE else ()
    total = sum(sizes) if kind is Kind.FILE else None
    about = UnixFs(kind, file_size=total, block_sizes=sizes)
    return node(about, *(Link(cid, name, size) for name, cid, size in children))


def shard(
    *links: Link, fanout: int = HAMT_WIDTH, hash_type: int = HAMT_MURMUR3
) -> tuple[Cid, bytes]:
    about = UnixFs(Kind.HAMT_SHARD, b"\xff", hash_type=hash_type, fanout=fanout)
    return node(about, *links)


# --- Bombs


def test_a_chain_without_end_is_left() -> None:
    cid, block = raw(b"x")
    blocks = {cid: block}
    for _ in range(40):
        cid, block = linked(Kind.FILE, ("", cid, 1))
        blocks[cid] = block

    with pytest.raises(LimitExceededError, match="deeper than 32"):
        read(blocks, cid)
    with pytest.raises(LimitExceededError, match="deeper than 32"):
        list(walk_over(blocks).blocks(cid))


def test_folders_without_end_are_left() -> None:
    cid, block = linked(Kind.DIRECTORY)
    blocks = {cid: block}
    for _ in range(40):
        cid, block = linked(Kind.DIRECTORY, ("in", cid, 0))
        blocks[cid] = block

    with pytest.raises(LimitExceededError, match="deeper than 32"):
        list(walk_over(blocks).tree(cid))
    with pytest.raises(LimitExceededError, match="deeper than 32"):
        list(walk_over(blocks).blocks(cid))


def test_shards_without_end_are_left() -> None:
    cid, block = shard()
    blocks = {cid: block}
    for _ in range(40):
        cid, block = shard(Link(cid, "00", 0))
        blocks[cid] = block

    with pytest.raises(LimitExceededError, match="deeper than"):
        list(walk_over(blocks).ls(cid))
    with pytest.raises(LimitExceededError, match="deeper than"):
        list(walk_over(blocks).blocks(cid))


def test_a_lookup_in_shards_ends_with_the_hash_of_the_name() -> None:
    cid, block = shard()
    blocks = {cid: block}
    for byte in reversed(name_hash("name") * 2):
        cid, block = shard(Link(cid, f"{byte:02X}", 0))
        blocks[cid] = block

    with pytest.raises(LimitExceededError, match="deeper than 8"):
        walk_over(blocks).stat(ContentPath(cid, ("name",)))


def test_shards_that_unfold_are_left() -> None:
    cid, block = shard()
    blocks = {cid: block}
    for _ in range(25):
        cid, block = shard(Link(cid, "00", 0), Link(cid, "01", 0))
        blocks[cid] = block

    with pytest.raises(MalformedBlockError, match="twice"):
        list(walk_over(blocks).ls(cid))


def test_a_dag_that_unfolds_without_end_is_left() -> None:
    """Twenty-five blocks whose unfolding has 2 to the power of 25 nodes."""
    cid, block = linked(Kind.FILE)
    blocks = {cid: block}
    for _ in range(25):
        cid, block = linked(Kind.FILE, ("", cid, 0), ("", cid, 0))
        blocks[cid] = block

    for _ in walk_over(blocks, Limits(nodes=1000)).blocks(cid):
        pass  # each block once: nothing unfolds
    with pytest.raises(LimitExceededError, match="over 1000 nodes"):
        list(walk_over(blocks, Limits(nodes=1000)).blocks(cid, once=False))


def test_an_empty_file_that_unfolds_is_read_in_no_time() -> None:
    """Parts of no bytes are never wanted."""
    cid, block = linked(Kind.FILE)
    blocks = {cid: block}
    for _ in range(25):
        cid, block = linked(Kind.FILE, ("", cid, 0), ("", cid, 0))
        blocks[cid] = block

    assert read(blocks, cid) == b""


def test_a_file_that_unfolds_ends_at_its_limit_of_bytes() -> None:
    cid, block = raw(bytes(1000))
    blocks, size = {cid: block}, 1000
    for _ in range(30):
        cid, block = linked(Kind.FILE, ("", cid, size), ("", cid, size))
        blocks[cid], size = block, 2 * size

    with pytest.raises(LimitExceededError, match=f"{size} bytes"):
        read(blocks, cid, Limits(file_bytes=10**9))


def test_folders_that_unfold_are_left() -> None:
    cid, block = linked(Kind.DIRECTORY)
    blocks = {cid: block}
    for _ in range(25):
        cid, block = linked(Kind.DIRECTORY, ("a", cid, 0), ("b", cid, 0))
        blocks[cid] = block

    with pytest.raises(LimitExceededError, match="over 1000 nodes"):
        list(walk_over(blocks, Limits(nodes=1000)).tree(cid))


def test_a_node_with_too_many_links_is_left() -> None:
    leaf, data = raw(b"")
    cid, block = linked(Kind.FILE, *(("", leaf, 0) for _ in range(101)))

    with pytest.raises(LimitExceededError, match="101 links"):
        read({cid: block, leaf: data}, cid, Limits(links_per_node=100))


def test_a_folder_with_too_many_entries_is_left() -> None:
    leaf, data = raw(b"")
    cid, block = linked(Kind.DIRECTORY, *((str(number), leaf, 0) for number in range(101)))

    with pytest.raises(LimitExceededError, match="over 100 entries"):
        list(walk_over({cid: block, leaf: data}, Limits(directory_entries=100)).ls(cid))


def test_a_block_larger_than_allowed_is_not_even_hashed() -> None:
    cid, block = raw(bytes(2001))

    with pytest.raises(UnavailableError, match="2001 bytes where 2000 are allowed"):
        read({cid: block}, cid, Limits(block_bytes=2000))


# --- Lies


LEAF, LEAF_BLOCK = raw(b"four")


def look_and_read(blocks: Blocks, cid: Cid) -> None:
    walk_over(blocks).stat(ContentPath(cid))
    read(blocks, cid)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        (UnixFs(Kind.FILE, file_size=4, block_sizes=(4, 4)), "links and 2 sizes"),
        (UnixFs(Kind.FILE, file_size=4), "links and 0 sizes"),
        (UnixFs(Kind.FILE, file_size=99, block_sizes=(4,)), "says 99 bytes"),
        (UnixFs(Kind.FILE, file_size=3, block_sizes=(3,)), "its parent says 3"),
        (UnixFs(Kind.FILE, file_size=5, block_sizes=(5,)), "its parent says 5"),
        (UnixFs(Kind.FILE, b"data", file_size=4, block_sizes=(4,)), "says 4 bytes"),
        (UnixFs(Kind.FILE, block_sizes=(2**62, 2**62)), "sizes"),
        (UnixFs(Kind.METADATA), "METADATA"),
        (None, "without UnixFS"),
    ],
)
def test_a_file_that_lies_about_itself_is_refused(about: UnixFs | None, why: str) -> None:
    cid, block = node(about, Link(LEAF, "", 4))

    with pytest.raises(MalformedBlockError, match=why):
        look_and_read({cid: block, LEAF: LEAF_BLOCK}, cid)


def test_a_lie_further_down_is_refused() -> None:
    inner, inner_block = linked(Kind.FILE, ("", LEAF, 4), ("", LEAF, 4))
    outer, outer_block = linked(Kind.FILE, ("", inner, 9))

    with pytest.raises(MalformedBlockError, match="8 bytes where its parent says 9"):
        read({inner: inner_block, outer: outer_block, LEAF: LEAF_BLOCK}, outer)


def test_a_folder_inside_a_file_is_refused() -> None:
    folder, folder_block = linked(Kind.DIRECTORY)
    cid, block = linked(Kind.FILE, ("", folder, 4))

    with pytest.raises(IsADirectoryContentError):
        read({folder: folder_block, cid: block}, cid)


@pytest.mark.parametrize(
    ("fanout", "hash_type"), [(8, HAMT_MURMUR3), (2**40, HAMT_MURMUR3), (HAMT_WIDTH, 0x12)]
)
def test_a_shard_of_another_make_is_refused(fanout: int, hash_type: int) -> None:
    cid, block = shard(Link(LEAF, "00a", 4), fanout=fanout, hash_type=hash_type)

    for look in (
        lambda walk: list(walk.ls(cid)),
        lambda walk: walk.stat(ContentPath(cid, ("a",))),
    ):
        with pytest.raises(MalformedBlockError, match="sharded directory"):
            look(walk_over({cid: block, LEAF: LEAF_BLOCK}))


def test_a_shard_with_a_link_of_one_letter_is_refused() -> None:
    cid, block = shard(Link(LEAF, "0", 4))

    with pytest.raises(MalformedBlockError, match="without its place"):
        list(walk_over({cid: block}).ls(cid))


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc/passwd", "a\0b", "n" * 300])
@pytest.mark.parametrize("sharded", [False, True])
def test_a_name_that_leads_out_is_refused(name: str, sharded: bool) -> None:
    if sharded and not name:
        return  # that is the way to a deeper shard
    link = Link(LEAF, f"00{name}" if sharded else name, 4)
    cid, block = shard(link) if sharded else node(UnixFs(Kind.DIRECTORY), link)

    with pytest.raises(InvalidPathError):
        list(walk_over({cid: block, LEAF: LEAF_BLOCK}).ls(cid))
    with pytest.raises(InvalidPathError):
        list(walk_over({cid: block, LEAF: LEAF_BLOCK}).tree(cid))


def test_a_name_that_stands_twice_is_refused() -> None:
    """Else two readers could see two files under one name."""
    other, other_block = raw(b"other")
    cid, block = linked(Kind.DIRECTORY, ("same", LEAF, 4), ("same", other, 5))

    with pytest.raises(MalformedBlockError, match="twice"):
        list(walk_over({cid: block, LEAF: LEAF_BLOCK, other: other_block}).ls(cid))


# --- What is allowed


@pytest.mark.parametrize("sharded", [False, True])
def test_folders_do_not_count_as_levels_of_the_file_in_them(sharded: bool) -> None:
    """As deep as folders may be, with a file in them that has levels of its own."""
    data = bytes(range(256)) * 200
    file, blocks = file_of(data, FixedChunker(64))
    cid = file.cid
    for _ in range(32):
        link = Link(cid, "00in" if sharded else "in", 0)
        cid, block = shard(link) if sharded else node(UnixFs(Kind.DIRECTORY), link)
        blocks[cid] = block

    assert {found for found, _, _ in walk_over(blocks).blocks(cid)} == set(blocks)
    *_, last = (
        (item.entry.size, b"".join(bytes(p.data) for p in item.pieces))
        for item in walk_over(blocks).tree(cid)
    )
    assert last == (len(data), data)


def test_a_path_does_not_go_on_in_a_file() -> None:
    cid, block = linked(Kind.DIRECTORY, ("file", LEAF, 4))

    with pytest.raises(NotADirectoryContentError):
        walk_over({cid: block, LEAF: LEAF_BLOCK}).stat(ContentPath(cid, ("file", "more")))


def test_bytes_may_stand_inside_nodes() -> None:
    """Old files have their bytes in the node, some even beside links."""
    inner, inner_block = node(UnixFs(Kind.FILE, b"inner", file_size=5))
    about = UnixFs(Kind.FILE, b"outer ", file_size=15, block_sizes=(5, 4))
    cid, block = node(about, Link(inner, "", 5), Link(LEAF, "", 4))
    blocks = {cid: block, inner: inner_block, LEAF: LEAF_BLOCK}

    assert read(blocks, cid) == b"outer innerfour"


def test_a_block_inside_its_cid_is_read_from_there() -> None:
    inline = Cid(Codec.RAW, b"tiny", HashFunction.IDENTITY)
    cid, block = linked(Kind.FILE, ("", inline, 4))

    assert read({cid: block}, cid) == b"tiny"


def test_only_the_blocks_of_a_range_are_fetched() -> None:
    built, blocks = file_of(bytes(range(256)) * 64)
    shelf = Shelf(blocks)
    walk = Walk(DirectFeed(Fetcher(None, [shelf])), Limits())

    data = b"".join(bytes(piece.data) for piece in walk.read(built.cid, 130, 5))

    assert data == bytes(range(130, 135))
    assert len(shelf.asked) == 1 + 1 + 1  # the root, a node, a leaf


# --- Flipped bytes


@given(st.binary(min_size=65, max_size=20_000), st.data())
def test_a_flip_anywhere_is_noticed(data: bytes, draw: st.DataObject) -> None:
    built, blocks = file_of(data)
    bad = draw.draw(st.sampled_from(sorted(blocks)))
    at = draw.draw(st.integers(0, len(blocks[bad]) - 1))
    flipped = bytearray(blocks[bad])
    flipped[at] ^= draw.draw(st.integers(1, 255))
    wrong: Blocks = {**blocks, bad: bytes(flipped)}

    with pytest.raises(UnavailableError) as caught:
        read(wrong, built.cid)
    assert caught.value.cid == bad
    assert caught.value.corrupt
    assert "shelf sent a corrupt block" in str(caught.value)


REFUSALS = (
    InvalidPathError,
    IsADirectoryContentError,
    MalformedBlockError,
    NotADirectoryContentError,
)


@given(st.binary(max_size=60))
def test_arbitrary_nodes_are_read_or_refused(data: bytes) -> None:
    """Whatever stands in a node, a reader ends with an error that we know."""
    for block in (data, encode_node([Link(LEAF, "00a", 4)], data)):
        cid = Cid.of(Codec.DAG_PB, block)
        blocks = {cid: block, LEAF: LEAF_BLOCK}
        for look in (
            lambda walk, cid: walk.stat(ContentPath(cid)),
            lambda walk, cid: list(walk.ls(cid)),
            lambda walk, cid: list(walk.read(cid)),
            lambda walk, cid: list(walk.tree(cid)),
            lambda walk, cid: list(walk.blocks(cid)),
        ):
            with suppress(*REFUSALS):
                look(walk_over(blocks), cid)
