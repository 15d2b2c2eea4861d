"""KuboStore against real nodes: peers, faults, damage, and what only a node can do."""

import contextlib
import io
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from trainyard.content import kubo as kubo_module
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
from trainyard.content.kubo_batch import KuboBatch
from trainyard.content.kubo_node import KuboNode
from trainyard.content.kubo_rpc import KuboRpc
from trainyard.content.limits import KIB, MIB
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built

pytest_plugins = ("tests.kubo_nodes",)

StartNode = Callable[[], KuboNode]


@pytest.fixture
def start_node(kubo_binary: Path, tmp_path: Path) -> Iterator[StartNode]:
    """Starts nodes that a test may harm."""
    with ExitStack() as stack:
        count = iter(range(100))
        yield lambda: stack.enter_context(KuboNode(kubo_binary, tmp_path / f"node {next(count)}"))


@pytest.fixture
def store(kubo_node: KuboNode) -> KuboStore:
    return KuboStore(kubo_node.api_url)


def add(store: KuboStore, data: bytes, chunk: int = 256 * KIB) -> Built:
    return Content(store).add(io.BytesIO(data), chunker=FixedChunker(chunk))


def read(store: KuboStore, cid: Cid) -> bytes:
    return b"".join(Content(store).cat(ContentPath(cid)))


def block_file(node: KuboNode, block: bytes) -> Path:
    """Where a node keeps a block: a file that holds it and nothing else."""
    for path in (node.repo / "blocks").rglob("*.data"):
        if path.stat().st_size == len(block) and path.read_bytes() == block:
            return path
    raise LookupError("the node does not have the block")


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


# --- Damage


def test_a_flipped_bit_in_any_block_is_refused(start_node: StartNode) -> None:
    node = start_node()
    store = KuboStore(node.api_url)
    data = secrets.token_bytes(5 * 64 * KIB)
    built = add(store, data, 64 * KIB)
    blocks: dict[Cid, bytes] = {}
    build_file(io.BytesIO(data), blocks.__setitem__, FixedChunker(64 * KIB))
    assert len(blocks) == 6
    for cid, block in blocks.items():
        path = block_file(node, block)
        damaged = bytearray(block)
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        # The node itself notices nothing.
        assert store.fetch(cid) == bytes(damaged)
        with pytest.raises(UnavailableError, match=str(cid)) as caught:
            read(store, built.cid)
        assert caught.value.corrupt
        assert store.name in str(caught.value)
        path.write_bytes(block)
    assert read(store, built.cid) == data


def test_kubos_own_cat_serves_damaged_bytes(start_node: StartNode) -> None:
    node = start_node()
    data = secrets.token_bytes(100 * KIB)
    built = add(KuboStore(node.api_url), data)
    path = block_file(node, data)
    path.write_bytes(b"\0" * len(data))

    assert KuboRpc(node.api_url).call("cat", ("arg", str(built.cid))) == b"\0" * len(data)


def test_a_damaged_block_is_healed_from_another_source(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    near, far = KuboStore(here.api_url), KuboStore(there.api_url)
    data = secrets.token_bytes(100 * KIB)
    cid = Content(near).add(io.BytesIO(data), pin=False).cid
    add(far, data)
    block_file(here, data).write_bytes(b"\0" * len(data))

    assert b"".join(Content(near, [far]).cat(ContentPath(cid))) == data
    assert near.fetch(cid) == data


def test_a_pinned_block_that_is_damaged_is_read_elsewhere(start_node: StartNode) -> None:
    here, there = start_node(), start_node()
    near, far = KuboStore(here.api_url), KuboStore(there.api_url)
    data = secrets.token_bytes(100 * KIB)
    cid = add(near, data).cid
    add(far, data)
    block_file(here, data).write_bytes(b"\0" * len(data))

    assert b"".join(Content(near, [far]).cat(ContentPath(cid))) == data
    with pytest.raises(StoreError, match="repo verify"):
        near.discard(cid)


def test_a_withheld_leaf_is_named(start_node: StartNode) -> None:
    node = start_node()
    store = KuboStore(node.api_url, timeout_s=2.0)
    data = secrets.token_bytes(5 * 64 * KIB)
    built = add(store, data, 64 * KIB)
    leaf = data[2 * 64 * KIB : 3 * 64 * KIB]
    block_file(node, leaf).unlink()

    with pytest.raises(UnavailableError, match=str(Cid.of(Codec.RAW, leaf))):
        read(store, built.cid)


# --- Pins and lots


def test_pinning_again_does_not_lose_the_pin_of_damaged_content(start_node: StartNode) -> None:
    """Kubo drops the old pin before it looks for the blocks; we do not ask it to."""
    node = start_node()
    store = KuboStore(node.api_url, timeout_s=2.0)
    data = secrets.token_bytes(5 * 64 * KIB)
    built = add(store, data, 64 * KIB)
    block_file(node, data[: 64 * KIB]).unlink()
    store.pin(built.cid)
    with store.batch() as batch:
        batch.pin(built.cid)

    assert built.cid in store.pins()


def abandoned_lot(node: KuboNode) -> list[Cid]:
    """Leaves of a batch whose process died before it ended."""
    batch = KuboBatch(KuboRpc(node.api_url), lot_bytes=KIB)
    leaves = [secrets.token_bytes(KIB) for _ in range(3)]
    for leaf in leaves:
        batch.put(Cid.of(Codec.RAW, leaf), leaf)
    # All that dies with a process; what its lots pinned stays.
    batch._waiting.close()
    return [Cid.of(Codec.RAW, leaf) for leaf in leaves]


def test_leaves_sent_ahead_are_kept_and_not_shown_as_pins(start_node: StartNode) -> None:
    node = start_node()
    store = KuboStore(node.api_url)
    before = store.pins()
    leaves = abandoned_lot(node)
    store.collect()

    assert store.pins() == before
    assert all(store.has(leaf) for leaf in leaves)


def test_leaves_of_a_batch_that_died_long_ago_are_cleared(
    start_node: StartNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = start_node()
    store = KuboStore(node.api_url)
    leaves = abandoned_lot(node)
    monkeypatch.setattr(kubo_module, "LOT_LIFE_S", -60)
    store.collect()

    assert not any(store.has(leaf) for leaf in leaves)


def test_a_foreign_client_that_collects_takes_nothing_from_a_batch(
    start_node: StartNode,
) -> None:
    """Not our collection, which might wait for our batches: the node's own."""
    node = start_node()
    store = KuboStore(node.api_url, lot_bytes=128 * KIB)
    foreign = KuboRpc(node.api_url)
    data = secrets.token_bytes(2 * MIB)
    with store.batch() as batch:

        def put(cid: Cid, block: bytes) -> None:
            batch.put(cid, block)
            foreign.call("repo/gc")

        built = build_file(io.BytesIO(data), put, FixedChunker(64 * KIB))
        batch.pin(built.cid)
    foreign.call("repo/gc")

    assert read(store, built.cid) == data


def test_blocks_that_do_not_match_their_cid_are_not_taken(store: KuboStore) -> None:
    cid = Cid.of(Codec.RAW, secrets.token_bytes(10))
    with pytest.raises(StoreError, match="import"), store.batch() as batch:
        batch.put(cid, b"something else")

    assert not store.has(cid)


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
