"""What every ContentStore does, whether it is a folder of ours or a Kubo node."""

import io
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import OpenStore
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec, HashFunction
from trainyard.content.content import Content
from trainyard.content.errors import BlockNotFoundError, NotFoundError, UnavailableError
from trainyard.content.kubo import KuboStore
from trainyard.content.limits import KIB
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built
from trainyard.content.ports import ContentStore, StreamingSource

pytest_plugins = ("tests.kubo_nodes",)

Fresh = Callable[[int], bytes]


def raw(block: bytes) -> Cid:
    return Cid.of(Codec.RAW, block)


def tree_of(content: bytes, chunk: int = 4 * KIB) -> tuple[Built, dict[Cid, bytes]]:
    """A file and all its blocks."""
    blocks: dict[Cid, bytes] = {}
    built = build_file(io.BytesIO(content), blocks.__setitem__, FixedChunker(chunk))
    return built, blocks


def put_all(store: ContentStore, blocks: dict[Cid, bytes], *roots: Cid) -> None:
    with store.batch() as batch:
        for cid, block in blocks.items():
            batch.put(cid, block)
        for root in roots:
            batch.pin(root)


class BrokenOffError(Exception):
    pass


def break_off(store: ContentStore, blocks: dict[Cid, bytes], *roots: Cid) -> None:
    """A batch whose writer fails after all was put."""
    with store.batch() as batch:
        for cid, block in blocks.items():
            batch.put(cid, block)
        for root in roots:
            batch.pin(root)
        raise BrokenOffError


# --- Blocks


@pytest.mark.parametrize("size", [1, 1000, 256 * KIB, 1024 * KIB])
def test_a_block_comes_back_as_it_was_put(store: ContentStore, fresh: Fresh, size: int) -> None:
    block = fresh(size)
    put_all(store, {raw(block): block})

    assert store.has(raw(block))
    assert store.fetch(raw(block)) == block


def test_the_empty_block_can_be_kept(store: ContentStore) -> None:
    put_all(store, {raw(b""): b""}, raw(b""))

    assert store.fetch(raw(b"")) == b""
    store.unpin(raw(b""))


def test_what_was_put_is_there_for_whoever_opens_the_store_next(
    open_store: OpenStore, fresh: Fresh
) -> None:
    block = fresh(100)
    put_all(open_store(), {raw(block): block})

    assert open_store().fetch(raw(block)) == block


def test_an_absent_block_is_named_with_the_store(store: ContentStore, fresh: Fresh) -> None:
    absent = raw(fresh(32))

    assert not store.has(absent)
    with pytest.raises(BlockNotFoundError) as caught:
        store.fetch(absent)
    assert str(absent) in str(caught.value)
    assert store.name in str(caught.value)


def test_a_block_is_found_by_either_version_of_its_cid(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(10 * KIB))
    put_all(store, blocks)
    old = Cid(Codec.DAG_PB, built.cid.digest, version=0)

    assert store.has(old)
    assert store.fetch(old) == blocks[built.cid]


def test_a_cid_that_carries_its_block_needs_no_store(store: ContentStore, fresh: Fresh) -> None:
    inline = Cid(Codec.RAW, fresh(20), HashFunction.IDENTITY)
    put_all(store, {inline: inline.digest})

    assert store.has(inline)
    assert store.fetch(inline) == inline.digest


def test_a_block_put_twice_is_kept_once(store: ContentStore, fresh: Fresh) -> None:
    block = fresh(1000)
    before = store.usage().blocks
    with store.batch() as batch:
        batch.put(raw(block), block)
        batch.put(raw(block), block)
    put_all(store, {raw(block): block})

    assert store.usage().blocks == before + 1


def test_usage_counts_blocks_and_bytes(store: ContentStore, fresh: Fresh) -> None:
    before = store.usage()
    block = fresh(100_000)
    put_all(store, {raw(block): block})
    after = store.usage()

    assert after.blocks == before.blocks + 1
    assert after.bytes >= before.bytes + 100_000


# --- Batches


def test_a_batch_that_fails_leaves_nothing(store: ContentStore, fresh: Fresh) -> None:
    block = fresh(1000)
    with pytest.raises(BrokenOffError):
        break_off(store, {raw(block): block}, raw(block))

    assert not store.has(raw(block))
    assert raw(block) not in store.pins()


def test_what_fails_in_the_writers_own_files_is_not_the_stores_fault(store: ContentStore) -> None:
    with pytest.raises(FileNotFoundError, match="absent"), store.batch():
        Path("absent").read_bytes()


def test_a_large_batch_that_fails_pins_nothing(store: ContentStore, fresh: Fresh) -> None:
    before = store.pins()
    built, blocks = tree_of(fresh(300 * KIB))
    with pytest.raises(BrokenOffError):
        break_off(store, blocks, built.cid)

    assert store.pins() == before
    store.collect()
    assert not any(store.has(cid) for cid in blocks)


def test_a_large_batch_pins_its_roots_and_nothing_else(store: ContentStore, fresh: Fresh) -> None:
    before = store.pins()
    built, blocks = tree_of(fresh(300 * KIB))
    put_all(store, blocks, built.cid)

    assert store.pins() - before == {built.cid}
    assert all(store.fetch(cid) == block for cid, block in blocks.items())


def test_a_batch_pins_what_the_store_already_has(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    put_all(store, blocks)
    put_all(store, {}, built.cid)

    assert built.cid in store.pins()


def test_a_batch_cannot_pin_what_is_not_whole(impatient: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    del blocks[next(iter(blocks))]
    with pytest.raises(UnavailableError):
        put_all(impatient, blocks, built.cid)

    assert built.cid not in impatient.pins()


def test_an_empty_batch_is_no_error(store: ContentStore) -> None:
    before = store.pins()
    put_all(store, {})

    assert store.pins() == before


# --- Pins


def test_pinning_and_unpinning(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    put_all(store, blocks)
    before = store.pins()
    store.pin(built.cid)
    assert store.pins() - before == {built.cid}

    store.unpin(built.cid)
    assert store.pins() == before


def test_a_pin_is_one_however_often_it_is_set(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    put_all(store, blocks, built.cid)
    put_all(store, blocks, built.cid)
    store.pin(built.cid)
    store.unpin(built.cid)

    assert built.cid not in store.pins()


def test_what_is_not_pinned_cannot_be_unpinned(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    put_all(store, blocks, built.cid)
    for cid in [raw(fresh(32)), next(iter(blocks))]:
        with pytest.raises(NotFoundError, match=str(cid)):
            store.unpin(cid)


def test_an_absent_root_cannot_be_pinned(store: ContentStore, fresh: Fresh) -> None:
    absent = raw(fresh(32))
    with pytest.raises(UnavailableError, match=str(absent)):
        store.pin(absent)

    assert absent not in store.pins()


def test_a_root_with_a_missing_leaf_cannot_be_pinned(store: ContentStore, fresh: Fresh) -> None:
    built, blocks = tree_of(fresh(20 * KIB))
    missing = next(iter(blocks))
    del blocks[missing]
    put_all(store, blocks)
    with pytest.raises(UnavailableError, match=str(missing)):
        store.pin(built.cid)

    assert built.cid not in store.pins()


# --- Garbage collection


def test_collection_removes_what_no_pin_needs(store: ContentStore, fresh: Fresh) -> None:
    kept, kept_blocks = tree_of(fresh(40 * KIB))
    dropped, dropped_blocks = tree_of(fresh(40 * KIB))
    put_all(store, kept_blocks, kept.cid)
    put_all(store, dropped_blocks, dropped.cid)
    store.unpin(dropped.cid)
    removed = store.collect()

    assert all(store.has(cid) for cid in kept_blocks)
    assert not any(store.has(cid) for cid in dropped_blocks)
    assert removed.blocks >= len(dropped_blocks)
    assert removed.bytes > 0


def test_collection_keeps_blocks_that_another_root_shares(
    store: ContentStore, fresh: Fresh
) -> None:
    common = fresh(40 * KIB)
    short, short_blocks = tree_of(common)
    longer, longer_blocks = tree_of(common + fresh(40 * KIB))
    put_all(store, short_blocks, short.cid)
    put_all(store, longer_blocks, longer.cid)
    store.unpin(longer.cid)
    store.collect()

    assert all(store.fetch(cid) == block for cid, block in short_blocks.items())
    assert not store.has(longer.cid)


def test_collection_with_nothing_to_remove(store: ContentStore) -> None:
    store.collect()

    assert store.collect().blocks == 0


def test_collection_beside_batches_loses_none_of_their_blocks(
    open_store: OpenStore, fresh: Fresh
) -> None:
    """Batches of many lots, from two threads, while a third collects without pause."""
    trees = [tree_of(fresh(600 * KIB)) for _ in range(6)]
    ended = threading.Event()
    failures: list[BaseException] = []
    collections = 0

    def adding(own: list[tuple[Built, dict[Cid, bytes]]]) -> None:
        try:
            store = open_store()
            for built, blocks in own:
                put_all(store, blocks, built.cid)
        except BaseException as error:
            failures.append(error)

    def collecting() -> None:
        nonlocal collections
        try:
            store = open_store()
            while not ended.is_set():
                store.collect()
                collections += 1
        except BaseException as error:
            failures.append(error)

    adders = [threading.Thread(target=adding, args=(trees[at::2],)) for at in range(2)]
    collector = threading.Thread(target=collecting)
    for thread in (*adders, collector):
        thread.start()
    for thread in adders:
        thread.join()
    ended.set()
    collector.join()

    store = open_store()
    assert not failures
    assert collections
    for built, blocks in trees:
        assert built.cid in store.pins()
        assert all(store.fetch(cid) == block for cid, block in blocks.items())


# --- Streams, of the one store that has them: the other is on this machine's disk


def test_which_stores_have_streams(store: ContentStore) -> None:
    assert isinstance(store, StreamingSource) == isinstance(store, KuboStore)


@pytest.mark.parametrize("size", [0, 1, 4 * KIB, 4 * KIB + 1, 800 * KIB])
def test_a_stream_brings_every_block_once_and_in_order(
    streaming_store: KuboStore, fresh: Fresh, size: int
) -> None:
    half = fresh(size // 2)
    built, blocks = tree_of(half + half + fresh(size % 2))
    put_all(streaming_store, blocks)
    came = list(streaming_store.stream(built.cid))

    assert came[0][0] == built.cid
    assert dict(came) == blocks
    assert len(came) == len(blocks)


def test_a_stream_of_an_absent_root_fails_at_once(streaming_store: KuboStore, fresh: Fresh) -> None:
    with pytest.raises(BlockNotFoundError):
        next(iter(streaming_store.stream(raw(fresh(32)))))


# --- Through the facade


@pytest.mark.parametrize(
    "size", [0, 1, KIB - 1, KIB, KIB + 1, 2 * KIB, 174 * KIB, 174 * KIB + 1, 175 * KIB]
)
def test_files_of_all_edge_sizes_come_back(store: ContentStore, fresh: Fresh, size: int) -> None:
    data = fresh(size)
    content = Content(store)
    built = content.add(io.BytesIO(data), chunker=FixedChunker(KIB))
    path = ContentPath(built.cid)

    assert content.stat(path).size == size
    assert b"".join(content.cat(path)) == data
    assert b"".join(content.cat(path, size // 2, 10)) == data[size // 2 : size // 2 + 10]
    content.close()


def test_a_directory_tree_comes_back(store: ContentStore, fresh: Fresh, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    files = {"a.bin": fresh(10), "b/c.bin": fresh(300 * KIB), "b/d/ü ñ.bin": b"", "b/d/e": fresh(1)}
    for name, data in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    content = Content(store)
    built = content.add(source)
    store.collect()
    content.get(ContentPath(built.cid), target)

    found = {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }
    assert found == files
    assert [entry.name for entry in content.ls(ContentPath(built.cid))] == ["a.bin", "b"]
    content.close()


def test_two_writers_may_add_the_same_content_at_once(open_store: OpenStore, fresh: Fresh) -> None:
    data = fresh(500 * KIB)
    built: list[Built] = []

    def add() -> None:
        built.append(Content(open_store()).add(io.BytesIO(data), chunker=FixedChunker(4 * KIB)))

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    store = open_store()
    assert len({one.cid for one in built}) == 1
    assert len(built) == 3
    store.collect()
    assert b"".join(Content(store).cat(ContentPath(built[0].cid))) == data
