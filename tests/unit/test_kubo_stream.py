"""Cutting a file's bytes into its blocks, and nodes that lie about them."""

import io
from typing import Any

import pytest

from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, encode_node
from trainyard.content.errors import SourceError
from trainyard.content.kubo_node import Ports, merge, private_config
from trainyard.content.kubo_rpc import parse_api_address
from trainyard.content.kubo_stream import has_raw_leaves, stream_file
from trainyard.content.limits import DEFAULT_LIMITS, Limits
from trainyard.content.unixfs import Kind, UnixFs


def tree_of(data: bytes, chunk: int) -> tuple[Cid, dict[Cid, bytes]]:
    blocks: dict[Cid, bytes] = {}
    return build_file(io.BytesIO(data), blocks.__setitem__, FixedChunker(chunk)).cid, blocks


def nothing(cid: Cid) -> bytes:
    raise AssertionError(f"{cid} was asked for")


def node(kind: Kind, children: list[tuple[Cid, int]], data: bytes = b"") -> tuple[Cid, bytes]:
    about = UnixFs(kind, data, None, tuple(size for _, size in children))
    block = encode_node([Link(cid, "", size) for cid, size in children], about.encode())
    return Cid.of(Codec.DAG_PB, block), block


@pytest.mark.parametrize("size", [2, 10, 1740, 1741, 174 * 175])
def test_blocks_come_depth_first_and_once(size: int) -> None:
    data = bytes(number % 7 for number in range(size))
    root, blocks = tree_of(data, 1)
    came = list(
        stream_file(
            "node", root, blocks[root], blocks.__getitem__, io.BytesIO(data), DEFAULT_LIMITS
        )
    )

    assert came[0][0] == root
    assert dict(came) == blocks
    assert len(came) == len(blocks)


def test_a_wrapped_leaf_among_raw_ones_keeps_the_rest_in_place() -> None:
    wrapped, wrapped_block = node(Kind.FILE, [], b"bb")
    leaves = {Cid.of(Codec.RAW, text): text for text in (b"aa", b"cc")}
    first, last = leaves
    root, block = node(Kind.FILE, [(first, 2), (wrapped, 2), (last, 2)])
    came = list(
        stream_file(
            "node",
            root,
            block,
            {wrapped: wrapped_block}.__getitem__,
            io.BytesIO(b"aabbcc"),
            DEFAULT_LIMITS,
        )
    )

    assert came == [(root, block), (first, b"aa"), (wrapped, wrapped_block), (last, b"cc")]


def test_bytes_that_end_too_early() -> None:
    data = bytes(range(100))
    root, blocks = tree_of(data, 10)
    stream = stream_file(
        "node", root, blocks[root], blocks.__getitem__, io.BytesIO(data[:95]), DEFAULT_LIMITS
    )

    with pytest.raises(SourceError, match=r"node: the bytes of .* end 5 too early"):
        list(stream)


def test_a_leaf_larger_than_allowed_is_not_read() -> None:
    root, block = node(Kind.FILE, [(Cid.of(Codec.RAW, b""), 1 << 40)])
    with pytest.raises(SourceError, match="a leaf of 1099511627776 bytes"):
        list(stream_file("node", root, block, nothing, io.BytesIO(b""), DEFAULT_LIMITS))


def test_a_file_deeper_than_allowed_is_left() -> None:
    blocks: dict[Cid, bytes] = {}
    cid = Cid.of(Codec.RAW, b"x")
    for _ in range(6):
        cid, block = node(Kind.FILE, [(cid, 1)])
        blocks[cid] = block
    limits = Limits(depth=4)
    with pytest.raises(SourceError, match="deeper than 4 levels"):
        list(stream_file("node", cid, blocks[cid], blocks.__getitem__, io.BytesIO(b"x"), limits))


@pytest.mark.parametrize("block", [b"\xff", encode_node([], b"\xff")])
def test_a_child_that_is_no_node_is_named(block: bytes) -> None:
    child = Cid.of(Codec.DAG_PB, block)
    root, top = node(Kind.FILE, [(child, 1)])
    with pytest.raises(SourceError, match=str(child)):
        list(
            stream_file(
                "node", root, top, {child: block}.__getitem__, io.BytesIO(b"x"), DEFAULT_LIMITS
            )
        )


def test_sizes_and_links_that_do_not_match() -> None:
    about = UnixFs(Kind.FILE, block_sizes=(1, 1))
    block = encode_node([Link(Cid.of(Codec.RAW, b"x"), "", 1)], about.encode())
    root = Cid.of(Codec.DAG_PB, block)
    with pytest.raises(SourceError, match="1 links and 2 sizes"):
        list(stream_file("node", root, block, nothing, io.BytesIO(b"xx"), DEFAULT_LIMITS))


def test_only_files_of_several_raw_blocks_are_cut() -> None:
    leaf = Cid.of(Codec.RAW, b"x")
    file, file_block = node(Kind.FILE, [(leaf, 1)])
    folder, folder_block = node(Kind.DIRECTORY, [])
    old = Cid(Codec.DAG_PB, file.digest, version=0)

    assert has_raw_leaves(file, file_block)
    assert not has_raw_leaves(old, file_block)
    assert not has_raw_leaves(folder, folder_block)
    assert not has_raw_leaves(*node(Kind.FILE, [], b"inline"))
    assert not has_raw_leaves(file, b"\xff")


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:5001",
        "http://127.0.0.1:5001/",
        "127.0.0.1:5001",
        "/ip4/127.0.0.1/tcp/5001",
    ],
)
def test_addresses_of_a_node(address: str) -> None:
    assert parse_api_address(address) == ("127.0.0.1", 5001)


@pytest.mark.parametrize(
    "address",
    ["", "5001", "http://host", "host:0", "host:70000", "/ip4/127.0.0.1", "/unix/x/tcp/1", "a/b:1"],
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ValueError, match="no API address"):
        parse_api_address(address)


def test_private_settings_replace_what_is_there_and_leave_the_rest() -> None:
    config: dict[str, Any] = {
        "Bootstrap": ["/ip4/192.0.2.1/tcp/4001"],
        "DNS": {"Resolvers": {".": "https://resolver.example"}},
        "Datastore": {"StorageMax": "10GB"},
        "Swarm": {"DisableNatPortMap": False, "ConnMgr": {"HighWater": 10}},
        "Plugins": {"Plugins": None},
    }
    merge(config, private_config(Ports(api=1, gateway=2, swarm=3), gateway_fetches=True))

    assert config["Bootstrap"] == []
    assert config["DNS"] == {"Resolvers": {}}
    assert config["Datastore"] == {"StorageMax": "10GB"}
    assert config["Swarm"]["DisableNatPortMap"] is True
    assert config["Swarm"]["ConnMgr"] == {"HighWater": 10}
    assert config["Addresses"]["Swarm"] == ["/ip4/127.0.0.1/tcp/3"]
    assert config["Gateway"]["NoFetch"] is False
