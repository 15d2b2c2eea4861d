"""The embedded store: what stays of a batch, of damage, of a crash; and what collection keeps."""

import io
import random
import shutil
from pathlib import Path

import pytest

from tests.unit.rights import without_roots_rights
from tests.unit.shelves import Shelf, file_of, node, raw
from trainyard.content.chunking import FixedChunker, GearChunker
from trainyard.content.cid import Cid, Codec, HashFunction
from trainyard.content.content import Content, Progress
from trainyard.content.dag import Link, encode_node
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import LimitExceededError, StoreError, UnavailableError
from trainyard.content.names import ContentPath
from trainyard.content.unixfs import Kind, UnixFs

DATA = random.Random(3).randbytes(36_000)
FILE, BLOCKS = file_of(DATA, FixedChunker(200))


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "store")


def filled(store: EmbeddedStore) -> Content:
    content = Content(store)
    assert content.add(io.BytesIO(DATA), chunker=FixedChunker(200)).cid == FILE.cid
    return content


def cat(content: Content, cid: Cid = FILE.cid) -> bytes:
    return b"".join(bytes(part) for part in content.cat(ContentPath(cid)))


def path_of(store: EmbeddedStore, cid: Cid) -> Path:
    name = cid.digest.hex()
    return store.root / "blocks" / name[:2] / name


# --- Damage


def test_every_flipped_block_is_noticed(store: EmbeddedStore) -> None:
    """Each block of a file of three levels: a node in three places, a leaf in one of them."""
    content = filled(store)
    assert len(BLOCKS) > 174
    for number, (cid, block) in enumerate(BLOCKS.items()):
        places = [0, len(block) // 2, len(block) - 1]
        for at in places if cid.codec is Codec.DAG_PB else [places[number % 3]]:
            flipped = bytearray(block)
            flipped[at] ^= 1
            path_of(store, cid).write_bytes(flipped)

            with pytest.raises(UnavailableError) as caught:
                cat(content)
            assert caught.value.corrupt
            assert caught.value.cid == cid
            assert store.name in str(caught.value)
        path_of(store, cid).write_bytes(block)
    assert cat(content) == DATA


@pytest.mark.parametrize("damage", [b"", b"short", bytes(5000)], ids=["empty", "short", "long"])
def test_blocks_of_another_length_are_noticed(store: EmbeddedStore, damage: bytes) -> None:
    content = filled(store)
    path_of(store, list(BLOCKS)[7]).write_bytes(damage)

    with pytest.raises(UnavailableError, match="corrupt"):
        cat(content)


def test_damage_heals_while_a_file_is_read(store: EmbeddedStore) -> None:
    filled(store)
    rotten = random.Random(1).sample(sorted(BLOCKS), 10)
    for cid in rotten:
        path_of(store, cid).write_bytes(b"rot")
    good = Shelf(BLOCKS)

    assert cat(Content(store, [good])) == DATA
    assert sorted(set(good.asked)) == sorted(rotten)
    assert cat(Content(store)) == DATA


def test_measuring_counts_files_and_blocks(store: EmbeddedStore) -> None:
    measured = filled(store).measure(ContentPath(FILE.cid))

    assert (measured.files, measured.logical_bytes) == (1, len(DATA))
    assert (measured.blocks, measured.physical_bytes) == (
        len(BLOCKS),
        sum(len(block) for block in BLOCKS.values()),
    )


def test_no_more_is_fetched_and_kept_than_is_allowed(store: EmbeddedStore) -> None:
    """Of a file that says it is empty, and leads to more."""
    total = sum(len(block) for block in BLOCKS.values())
    about = UnixFs(Kind.FILE, file_size=0, block_sizes=(0,))
    top = node(about, Link(FILE.cid, "", 0))
    there = Shelf(BLOCKS | dict([top]))
    content, path = Content(store, [there]), ContentPath(top[0])
    assert content.stat(path).size == 0

    for few in (0, total - 1):
        with pytest.raises(LimitExceededError, match=f"{few:,} bytes that are allowed"):
            content.pin(path, most_bytes=few)
        with pytest.raises(LimitExceededError, match=f"{few:,} bytes that are allowed"):
            content.measure(path, most_bytes=few)
    assert not store.pins()
    enough = total + len(top[1])
    assert content.pin(path, most_bytes=enough) == top[0]
    assert store.pins() == {top[0]}
    assert content.measure(path, most_bytes=enough).physical_bytes == enough


def test_adding_again_what_went_bad_puts_it_right(store: EmbeddedStore) -> None:
    content = filled(store)
    path_of(store, list(BLOCKS)[5]).write_bytes(b"rot")

    filled(store)

    assert cat(content) == DATA


# --- Batches


def test_a_batch_that_fails_leaves_nothing(store: EmbeddedStore) -> None:
    def interrupted() -> None:
        with store.batch() as batch:
            for cid, block in BLOCKS.items():
                batch.put(cid, block)
            batch.pin(FILE.cid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert store.usage().blocks == 0
    assert store.pins() == frozenset()
    assert list((store.root / "staging").iterdir()) == []


def test_a_pin_of_what_is_not_whole_is_refused(store: EmbeddedStore) -> None:
    def incomplete() -> None:
        with store.batch() as batch:
            for cid, block in list(BLOCKS.items())[1:]:
                batch.put(cid, block)
            batch.pin(FILE.cid)

    with pytest.raises(UnavailableError, match="does not have"):
        incomplete()
    assert store.pins() == frozenset()


def test_what_a_dead_process_left_is_swept_at_the_next_start(store: EmbeddedStore) -> None:
    for name in ("with lock", "without"):
        folder = store.root / "staging" / name
        folder.mkdir()
        (folder / "block").write_bytes(b"half a blo")
    (store.root / "staging" / "with lock" / "lock").touch()

    EmbeddedStore(store.root)

    assert list((store.root / "staging").iterdir()) == []


def test_a_batch_under_way_is_not_swept(store: EmbeddedStore) -> None:
    with store.batch() as batch:
        batch.put(*raw(b"block"))
        EmbeddedStore(store.root)

    assert store.fetch(raw(b"block")[0]) == b"block"


def test_a_file_with_the_bytes_of_a_node_stands_beside_it(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """The empty folder's node and a file with its four bytes have one digest, and two CIDs."""
    tree = tmp_path / "tree"
    (tree / "empty").mkdir(parents=True)
    (tree / "file").write_bytes(b"\x0a\x02\x08\x01")
    content = Content(store)

    built = content.add(tree)

    assert cat_path(content, built.cid, "file") == b"\x0a\x02\x08\x01"
    assert content.ls(ContentPath(built.cid, ("empty",))) == []


def cat_path(content: Content, cid: Cid, *names: str) -> bytes:
    return b"".join(bytes(part) for part in content.cat(ContentPath(cid, names)))


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")

    with pytest.raises(StoreError, match="not empty"):
        EmbeddedStore(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letter"]


def test_a_store_of_another_layout_is_left_alone(store: EmbeddedStore) -> None:
    (store.root / "layout").write_text("trainyard content store 2\n")

    with pytest.raises(StoreError, match="another layout"):
        EmbeddedStore(store.root)


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with without_roots_rights(), pytest.raises(StoreError, match="check that the folder"):
        EmbeddedStore(tmp_path / "store")


def test_a_store_that_vanished_is_said_so(store: EmbeddedStore) -> None:
    shutil.rmtree(store.root)

    with pytest.raises(StoreError, match="check that the folder exists"):
        Content(store).add(io.BytesIO(b"x"))


# --- Collection


def test_collection_keeps_what_is_pinned_and_nothing_else(store: EmbeddedStore) -> None:
    content = filled(store)
    other = content.add(io.BytesIO(DATA[:1000] + b"more"), chunker=FixedChunker(200), pin=False)

    freed = content.gc()

    assert freed.blocks == 2  # its last chunk and its root
    assert cat(content) == DATA
    assert not store.has(other.cid)
    content.unpin(FILE.cid)
    content.gc()
    assert store.usage() == type(freed)(0, 0)


def test_a_node_pinned_as_bytes_does_not_hide_its_children(store: EmbeddedStore) -> None:
    """One digest under two codecs: as bytes it has no children, as a node it has."""
    content = Content(store)
    files = {}
    for number in range(12):  # for the order in which pins are followed is by chance
        data = random.Random(number).randbytes(500)
        files[content.add(io.BytesIO(data), chunker=FixedChunker(200)).cid] = data
    for cid in files:
        content.pin(ContentPath(Cid(Codec.RAW, cid.digest)))

    content.gc()

    assert len(store.pins()) == 24
    for cid, data in files.items():
        assert cat(content, cid) == data


def test_collection_removes_nothing_where_a_pin_is_damaged(store: EmbeddedStore) -> None:
    content = filled(store)
    loose = content.add(io.BytesIO(b"loose"), pin=False)
    path_of(store, FILE.cid).unlink()

    with pytest.raises(StoreError, match=f"content pin {FILE.cid}"):
        content.gc()
    assert store.has(loose.cid)


def test_pinning_fetches_what_is_missing(store: EmbeddedStore) -> None:
    source = Shelf(BLOCKS)
    content = Content(store, [source])

    content.pin(ContentPath(FILE.cid))

    assert cat(Content(store)) == DATA
    assert store.pins() == {FILE.cid}
    content.close()


def test_a_new_version_stores_what_changed(store: EmbeddedStore) -> None:
    content = Content(store)
    data = random.Random(5).randbytes(300_000)
    content.add(io.BytesIO(data), chunker=GearChunker(1024))
    before = store.usage()

    content.add(io.BytesIO(data[:1000] + b"inserted" + data[1000:]), chunker=GearChunker(1024))

    assert store.usage().bytes - before.bytes < 0.15 * before.bytes


# --- Progress


def test_progress_of_adding_adds_up(store: EmbeddedStore, tmp_path: Path) -> None:
    seen: list[Progress] = []
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "a").write_bytes(bytes(1000))
    (tmp_path / "tree" / "sub" / "b").write_bytes(bytes(500))

    Content(store).add(tmp_path / "tree", progress=seen.append)

    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert (seen[-1].done, seen[-1].total) == (1500, 1500)


def test_progress_of_reading_adds_up_and_names_the_source(store: EmbeddedStore) -> None:
    seen: list[Progress] = []
    content = Content(store, [Shelf(BLOCKS)])

    for _ in content.cat(ContentPath(FILE.cid), 100, 10_000, progress=seen.append):
        pass

    content.close()
    assert (seen[-1].done, seen[-1].total) == (10_000, 10_000)
    assert {step.source for step in seen} == {"shelf"}


def test_a_symbolic_link_in_content_is_not_followed(store: EmbeddedStore) -> None:
    cid, block = node(UnixFs(Kind.SYMLINK, b"/etc/passwd"))
    outer, outer_block = node(UnixFs(Kind.DIRECTORY), Link(cid, "link", 0))
    content = Content(store, [Shelf({cid: block, outer: outer_block})])

    assert content.ls(ContentPath(outer))[0].kind == "symlink"
    with pytest.raises(ValueError, match="symbolic link"):
        list(content.cat(ContentPath(outer, ("link",))))
    content.close()


def test_a_node_inside_its_own_cid_is_followed_by_pins_and_collection(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store")
    leaf = Cid.of(Codec.RAW, b"leaf")
    block = encode_node([Link(leaf, "", 4)], UnixFs(Kind.FILE, b"", 4, (4,)).encode())
    root = Cid(Codec.DAG_PB, block, HashFunction.IDENTITY)
    with pytest.raises(UnavailableError):
        store.pin(root)
    with store.batch() as batch:
        batch.put(leaf, b"leaf")
        batch.pin(root)

    store.collect()

    assert store.has(leaf)


def test_discarding_leaves_a_good_block_where_it_is(tmp_path: Path) -> None:
    """Somebody else may have healed it meanwhile."""
    store = EmbeddedStore(tmp_path / "store")
    leaf = Cid.of(Codec.RAW, b"leaf")
    with store.batch() as batch:
        batch.put(leaf, b"leaf")

    store.discard(leaf)

    assert store.fetch(leaf) == b"leaf"
