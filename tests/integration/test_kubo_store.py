"""KuboStore against real nodes: peers, faults, and what only a node can do."""

import contextlib
import io
import secrets
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from tests.kubo_blocks import StartNode, add, read
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.errors import (
    BlockNotFoundError,
    NotFoundError,
    SourceError,
    SourceTimeoutError,
    StoreError,
    UnavailableError,
)
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import KIB, MIB
from trainyard.content.names import ContentPath

pytest_plugins = ("tests.kubo_nodes",)


@pytest.fixture
def store(kubo_node: KuboNode) -> KuboStore:
    return KuboStore(kubo_node.api_url)


# --- Peers


def test_what_one_node_has_is_read_through_the_other(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    data = secrets.token_bytes(3 * MIB)
    built = add(KuboStore(there.api_url), data)
    near = KuboStore(here.api_url)
    with pytest.raises(BlockNotFoundError):
        near.fetch(built.cid)

    here.connect(there)
    assert not near.has(built.cid)
    assert read(near, built.cid) == data
    assert near.has(built.cid)


def test_pinning_fetches_all_of_it_from_the_peer(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    data = secrets.token_bytes(3 * MIB)
    built = add(KuboStore(there.api_url), data)
    here.connect(there)
    near = KuboStore(here.api_url)
    near.pin(built.cid)
    there.stop()
    near.collect()

    assert built.cid in near.pins()
    assert read(near, built.cid) == data


def test_hints_connect_and_those_that_fail_are_told(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    data = secrets.token_bytes(MIB)
    built = add(KuboStore(there.api_url), data)
    near = KuboStore(here.api_url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        unreachable = f"/ip4/127.0.0.1/tcp/{port}/p2p/{there.peer_id}"
        hints = near.connect(
            ["12D3KooWnonsense", unreachable, there.addresses[0], there.addresses[0]],
            timeout_s=2.0,
        )

    by_address = {hint.address: hint.error for hint in hints}
    assert len(hints) == 3
    assert by_address[there.addresses[0]] is None
    assert "no multiaddress" in str(by_address["12D3KooWnonsense"])
    assert read(near, built.cid) == data


def test_too_many_hints_are_not_all_tried(store: KuboStore) -> None:
    peers = [f"no address {number}" for number in range(40)]
    hints = store.connect(peers)

    assert [hint.address for hint in hints] == peers
    assert sum("not tried" in str(hint.error) for hint in hints) == 8


def test_what_no_peer_has_is_waited_for_and_then_named(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    here.connect(there)
    near = KuboStore(here.api_url, peer_timeout_s=1.0)
    absent = Cid.of(Codec.RAW, secrets.token_bytes(32))

    with pytest.raises(SourceTimeoutError, match=near.name):
        near.fetch(absent)
    with pytest.raises(UnavailableError) as caught:
        near.pin(absent)
    assert caught.value.timed_out
    assert absent not in near.pins()


# --- Faults


def test_a_node_killed_in_the_middle_of_a_read_and_started_again(
    kubo_binary: Path, tmp_path: Path
) -> None:
    first = KuboNode(kubo_binary, tmp_path / "repo")
    first.start()
    ports = first.ports
    store = KuboStore(first.api_url)
    data = secrets.token_bytes(40 * MIB)
    path = ContentPath(add(store, data).cid)
    content = Content(store)
    reading = content.cat(path)
    began = [bytes(next(reading))]
    first.kill()
    with pytest.raises(UnavailableError, match=store.name):
        began += [bytes(piece) for piece in reading]
    got = b"".join(began)
    assert data.startswith(got)
    assert len(got) < len(data)

    with KuboNode(kubo_binary, tmp_path / "repo", ports=ports):
        assert b"".join(content.cat(path)) == data
        assert b"".join(content.cat(path, len(got))) == data[len(got) :]
    content.close()


def test_a_node_killed_in_the_middle_of_a_batch_and_started_again(
    kubo_binary: Path, tmp_path: Path
) -> None:
    first = KuboNode(kubo_binary, tmp_path / "repo")
    first.start()
    ports = first.ports
    store = KuboStore(first.api_url, lot_bytes=128 * KIB)
    kept = add(store, secrets.token_bytes(MIB))
    before = store.pins()
    data = secrets.token_bytes(2 * MIB)

    def add_and_kill() -> None:
        with store.batch() as batch:
            count = 0

            def put(cid: Cid, block: bytes) -> None:
                nonlocal count
                count += 1
                if count == 10:
                    first.kill()
                batch.put(cid, block)

            batch.pin(build_file(io.BytesIO(data), put, FixedChunker(64 * KIB)).cid)

    with pytest.raises(StoreError, match=store.name):
        add_and_kill()

    with KuboNode(kubo_binary, tmp_path / "repo", ports=ports):
        assert store.pins() == before
        assert read(store, add(store, data).cid) == data
        store.collect()
        assert len(read(store, kept.cid)) == MIB


def test_nobody_listens(unused_port: int) -> None:
    store = KuboStore(f"127.0.0.1:{unused_port}")
    cid = Cid.of(Codec.RAW, b"anything")

    with pytest.raises(SourceError, match=f"127.0.0.1:{unused_port}.*is the node running"):
        store.fetch(cid)
    with pytest.raises(StoreError, match="is the node running"):
        store.pins()
    with pytest.raises(StoreError, match="is the node running"), store.batch() as batch:
        batch.put(cid, b"anything")


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def answering(answer: bytes) -> tuple[socket.socket, threading.Thread]:
    """A server that says the same to everybody; to say nothing is to keep them waiting."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.ExitStack() as kept:
            while True:
                try:
                    connection = kept.enter_context(server.accept()[0])
                except OSError:
                    return
                if answer:
                    connection.recv(65536)
                    connection.sendall(answer)
                    connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return server, thread


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (b"", SourceTimeoutError, "no answer in time"),
        (b"this is no HTTP at all\r\n\r\n", SourceError, "block/get"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", SourceError, "block/get"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\ngo off", SourceError, "go off"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", SourceError, "status 500"),
    ],
)
def test_answers_that_are_none(answer: bytes, error: type[SourceError], said: str) -> None:
    server, thread = answering(answer)
    store = KuboStore(f"127.0.0.1:{server.getsockname()[1]}", timeout_s=1.0)
    try:
        with pytest.raises(error, match=said) as caught:
            store.fetch(Cid.of(Codec.RAW, b"anything"))
        assert store.name in str(caught.value)
    finally:
        # A blocked accept ends with a shutdown, not with a close.
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def test_no_room_for_the_blocks_that_wait(
    store: KuboStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    before = store.pins()
    with pytest.raises(StoreError, match="temporary file"):
        add(store, secrets.token_bytes(6 * MIB))

    assert store.pins() == before


# --- Mutable files


def test_publishing_under_a_name(start_node: StartNode, tmp_path: Path) -> None:
    store = KuboStore(start_node().api_url)
    file = add(store, secrets.token_bytes(100)).cid
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("x")
    folder = Content(store).add(tmp_path / "folder").cid
    for cid in (file, folder, file, file, folder):
        store.publish_mfs("/models/latest", cid)
        assert store.resolve_mfs("/models/latest") == cid

    # Nothing is left beside it.
    models = ContentPath(store.resolve_mfs("/models"))
    assert [entry.name for entry in Content(store).ls(models)] == ["latest"]


def test_what_is_published_is_kept_from_collection(start_node: StartNode) -> None:
    store = KuboStore(start_node().api_url)
    data = secrets.token_bytes(600 * KIB)
    built = add(store, data)
    store.publish_mfs("/kept", built.cid)
    store.unpin(built.cid)
    store.collect()

    assert read(store, built.cid) == data


def test_names_that_cannot_be_published(store: KuboStore) -> None:
    cid = add(store, b"anything").cid
    for path in ("relative", "/folder/", "/a//b", "/"):
        with pytest.raises(ValueError, match="mutable file"):
            store.publish_mfs(path, cid)
    with pytest.raises(NotFoundError, match="/absent"):
        store.resolve_mfs("/absent")


def test_publishing_what_is_absent_keeps_what_was_there(start_node: StartNode) -> None:
    store = KuboStore(start_node().api_url, timeout_s=2.0)
    cid = add(store, secrets.token_bytes(100)).cid
    store.publish_mfs("/latest", cid)
    with pytest.raises(StoreError, match="cannot publish"):
        store.publish_mfs("/latest", Cid.of(Codec.RAW, secrets.token_bytes(10)))

    assert store.resolve_mfs("/latest") == cid
