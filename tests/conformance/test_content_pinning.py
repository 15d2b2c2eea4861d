"""Pinning what others have, in every ContentStore: beside collections, and after a break."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import OpenStore
from trainyard.content import content as content_module
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import SourceError, UnavailableError
from trainyard.content.limits import KIB
from trainyard.content.names import ContentPath

pytest_plugins = ("tests.kubo_nodes",)

Fresh = Callable[[int], bytes]


class Far(EmbeddedStore):
    """Somebody else's store, which does as it is told before it answers."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[Cid] = []
        self.before: Callable[[int], None] = lambda count: None

    def fetch(self, cid: Cid) -> bytes:
        self.asked.append(cid)
        self.before(len(self.asked))
        return super().fetch(cid)


@pytest.fixture
def far(tmp_path: Path) -> Far:
    return Far(tmp_path / "far")


@pytest.fixture(autouse=True)
def few_bytes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a file of a few blocks takes the way that a large one takes."""
    monkeypatch.setattr(content_module, "_FLUSH_BYTES", 16 * KIB)


def add_to(far: Far, folder: Path, data: bytes) -> Cid:
    """A folder with a file of several levels."""
    folder.mkdir()
    (folder / "file").write_bytes(data)
    added = Content(far).add(folder, chunker=FixedChunker(KIB)).cid
    far.asked.clear()
    return added


def test_no_collection_takes_what_a_pin_fetched(
    open_store: OpenStore, far: Far, fresh: Fresh, tmp_path: Path
) -> None:
    """Some wait until the pin stands, others come between the blocks: none may do harm."""
    data = fresh(400 * KIB)
    root = add_to(far, tmp_path / "folder", data)
    collections: list[threading.Thread] = []

    def collect_beside(count: int) -> None:
        if count % 40 == 0:
            collections.append(threading.Thread(target=lambda: open_store().collect()))
            collections[-1].start()

    far.before = collect_beside
    content = Content(open_store(), [far])

    content.pin(ContentPath(root))

    for collection in collections:
        collection.join()
    content.close()
    assert len(collections) >= 10
    alone = Content(open_store())
    alone.gc()
    assert root in alone.store.pins()
    assert b"".join(alone.cat(ContentPath(root, ("file",)))) == data


def test_a_pin_that_broke_off_goes_on_where_it_was(
    open_store: OpenStore, far: Far, fresh: Fresh, tmp_path: Path
) -> None:
    data = fresh(400 * KIB)
    root = add_to(far, tmp_path / "folder", data)

    def die(count: int) -> None:
        if count > 200:
            raise SourceError(far.name, "it is gone")

    far.before = die
    content = Content(open_store(), [far])
    with pytest.raises(UnavailableError, match="it is gone"):
        content.pin(ContentPath(root))
    assert root not in content.store.pins()
    far.before, far.asked = lambda count: None, []

    content.pin(ContentPath(root))

    assert root in content.store.pins()
    content.close()
    # Of the 200 that came, those of the last few flushes may have been lost.
    assert len(far.asked) < 300
