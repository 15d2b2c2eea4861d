"""Nodes as bytes: dag-pb and UnixFS."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.shelves import raw
from trainyard.content.dag import Link, decode_node, encode_node, field
from trainyard.content.errors import MalformedBlockError
from trainyard.content.unixfs import Kind, UnixFs, decode_unixfs

LEAF, _ = raw(b"leaf")

names = st.text(max_size=20).filter(lambda name: name.isprintable())
links = st.builds(Link, st.just(LEAF), names, st.integers(0, 2**60))
sizes = st.lists(st.integers(0, 2**40), max_size=8).map(tuple)
abouts = st.builds(
    UnixFs,
    st.sampled_from(Kind),
    st.binary(max_size=50),
    st.none() | st.integers(0, 2**60),
    sizes,
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 2000),
)


@given(st.lists(links, max_size=8), st.binary(max_size=50))
def test_node_leads_back(children: list[Link], data: bytes) -> None:
    node = decode_node(encode_node(children, data))

    assert (list(node.links), node.data) == (children, data)


@given(abouts)
def test_unixfs_leads_back(about: UnixFs) -> None:
    assert decode_unixfs(about.encode()) == about


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_read_or_refused(block: bytes) -> None:
    for decode in (decode_node, decode_unixfs):
        with suppress(MalformedBlockError):
            decode(block)


def test_links_may_stand_behind_the_data() -> None:
    """Old nodes wrote them in the order of their numbers."""
    link = field(2, field(1, LEAF.encode()) + field(2, b"name") + field(3, 4))

    node = decode_node(field(1, b"data") + link)

    assert node.data == b"data"
    assert node.links == (Link(LEAF, "name", 4),)


def test_a_name_that_is_no_utf8_leads_back() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")

    assert decode_node(encode_node([Link(LEAF, name, 0)], b"")).links[0].name == name


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (b"\x0a\x05ab", "longer than its message"),
        (field(1, b"a") + field(1, b"b"), "repeated"),
        (field(3, b"a"), "unknown"),
        (b"\x0d" + bytes(4), "wire type"),
        (field(2, field(2, b"name")), "without a CID"),
        (field(2, field(1, b"\x01\x71\x12\x20" + bytes(32))), "codec"),
        (field(2, field(1, LEAF.encode()) + field(4, 1)), "field 4"),
        (b"\x80", "varint"),
    ],
)
def test_malformed_nodes_are_refused(block: bytes, why: str) -> None:
    with pytest.raises(MalformedBlockError, match=why):
        decode_node(block)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"", "no kind"),
        (field(1, 9), "9"),
        (field(1, 2) + field(9, 1), "field 9"),
        (field(1, b"x"), "field 1"),
    ],
)
def test_malformed_unixfs_is_refused(message: bytes, why: str) -> None:
    with pytest.raises(MalformedBlockError, match=why):
        decode_unixfs(message)


def test_packed_sizes_and_times_are_read() -> None:
    """Other writers pack the sizes, and add a mode and a time of change."""
    message = field(1, 2) + field(4, b"\x05\x80\x01") + field(7, 0o644) + field(8, b"\x08\x01")

    assert decode_unixfs(message) == UnixFs(Kind.FILE, block_sizes=(5, 128))
