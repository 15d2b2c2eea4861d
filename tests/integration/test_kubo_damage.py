"""KuboStore over nodes whose disks rot, and beside collections that others begin."""

import io
import secrets

import pytest

from tests.kubo_blocks import StartNode, add, block_file, read
from trainyard.content import kubo as kubo_module
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.errors import (
    StoreError,
    UnavailableError,
)
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_batch import KuboBatch
from trainyard.content.kubo_node import KuboNode
from trainyard.content.kubo_rpc import KuboRpc
from trainyard.content.limits import KIB, MIB
from trainyard.content.names import ContentPath

pytest_plugins = ("tests.kubo_nodes",)


@pytest.fixture
def store(kubo_node: KuboNode) -> KuboStore:
    return KuboStore(kubo_node.api_url)


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
