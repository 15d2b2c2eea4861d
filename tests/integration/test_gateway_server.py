"""Our Trustless Gateway as a server: over damage, before readers of ours, from start to end."""

import hashlib
import io
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import HTTPError

from tests.integration.gateway_world import ABSENT, Asker
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError, SourceError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.names import ContentPath
from trainyard.protocol.errors import PermanentError, TransientError

pytest_plugins = ("tests.integration.gateway_server",)


# --- Damage


@pytest.fixture
def damaged(content: Content) -> Iterator[tuple[Cid, Cid]]:
    """A file of which one leaf in the middle went bad."""
    data = random.Random(77).randbytes(2_000_000)
    blocks: dict[Cid, bytes] = {}
    built = build_file(io.BytesIO(data), blocks.__setitem__, FixedChunker(1000))
    content.add(io.BytesIO(data), chunker=FixedChunker(1000))
    assert isinstance(content.store, EmbeddedStore)
    leaf = [cid for cid in blocks if cid.codec is Codec.RAW][1500]
    path = content.store.root / "blocks" / leaf.digest.hex()[:2] / leaf.digest.hex()
    path.write_bytes(b"rot" + blocks[leaf][3:])
    yield built.cid, leaf
    path.write_bytes(blocks[leaf])


def test_a_bad_block_is_never_sent(ask: Asker, damaged: tuple[Cid, Cid]) -> None:
    _, leaf = damaged

    answer = ask(f"{leaf}?format=raw")
    assert answer.status == 500
    assert b"damaged" in answer.data
    assert b"rot" not in answer.data


def test_a_stream_that_meets_a_bad_block_is_cut_off(
    server: GatewayServer, damaged: tuple[Cid, Cid]
) -> None:
    root, leaf = damaged
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request(
            "GET", f"{server.address}/ipfs/{root}?format=car", preload_content=False
        )
        assert answer.status == 200
        with pytest.raises(HTTPError):
            list(answer.stream(4096))

    source = GatewaySource(server.address)
    received: list[tuple[Cid, bytes]] = []
    with pytest.raises(SourceError, match=f"no answer for {root}"):
        received.extend(source.stream(root))
    source.close()
    assert len(received) > 1000
    assert leaf not in dict(received)
    assert all(cid.matches(block) for cid, block in received)


# --- Both of our ends


def test_content_goes_from_store_to_store(
    server: GatewayServer, tree_cid: Cid, tmp_path: Path
) -> None:
    source = GatewaySource(server.address)
    reader = Content(EmbeddedStore(tmp_path / "store"), [source])

    reader.pin(ContentPath(tree_cid))

    source.close()
    reader.close()
    alone = Content(EmbeddedStore(tmp_path / "store"))
    assert len(alone.ls(ContentPath(tree_cid, ("many",)))) == 6000
    assert alone.measure(ContentPath(tree_cid)).files == 6001
    assert alone.verify(ContentPath(tree_cid)).faults == ()


def test_one_connection_serves_many_blocks(server: GatewayServer, file_cid: Cid) -> None:
    source = GatewaySource(server.address)
    with pytest.raises(BlockNotFoundError):
        source.fetch(ABSENT)
    for _ in range(20):
        source.fetch(file_cid)

    assert source._pool.num_connections == 1
    source.close()


def test_a_gateway_behind_a_gateway_fetches_only_if_told_to(
    server: GatewayServer, file_cid: Cid, tmp_path: Path
) -> None:
    upstream = GatewaySource(server.address)
    middle = Content(EmbeddedStore(tmp_path / "store"), [upstream])
    for fetch in (False, True):
        with GatewayServer(middle, fetch=fetch) as second:
            source = GatewaySource(second.address)
            if fetch:
                assert len(list(source.stream(file_cid))) == 400 + 4
            else:
                with pytest.raises(BlockNotFoundError):
                    source.fetch(file_cid)
            source.close()
    middle.close()
    upstream.close()


# --- The server


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])  # noqa: S104
def test_other_machines_are_let_in_only_on_request(content: Content, host: str) -> None:
    with pytest.raises(PermanentError, match=r"use 127\.0\.0\.1"):
        GatewayServer(content, host)
    GatewayServer(content, host, expose=True)


def test_a_stopped_server_frees_its_port(content: Content, file_cid: Cid) -> None:
    with GatewayServer(content) as first:
        address = first.address
    port = int(address.rsplit(":", 1)[1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with GatewayServer(content, port=port) as second:
        assert second.address == address
        source = GatewaySource(second.address)
        assert hashlib.sha256(source.fetch(file_cid)).digest() == file_cid.digest
        source.close()


def test_a_port_in_use_is_said_so(content: Content, server: GatewayServer) -> None:
    port = int(server.address.rsplit(":", 1)[1])

    with pytest.raises(TransientError, match="choose another port"):
        GatewayServer(content, port=port).start()
