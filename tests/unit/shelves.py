"""Sources in memory for tests of the content plane, and ways to fill them."""

import io
import threading
from collections.abc import Iterator, Mapping

from trainyard.content.build import build_file
from trainyard.content.chunking import Chunker, FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, encode_node
from trainyard.content.errors import BlockNotFoundError
from trainyard.content.fetching import DirectFeed, Fetcher
from trainyard.content.limits import DEFAULT_LIMITS, Limits
from trainyard.content.nodes import Built
from trainyard.content.reading import Walk
from trainyard.content.unixfs import UnixFs

Blocks = dict[Cid, bytes]


class Shelf:
    """A source that gives what it holds, right or wrong, and remembers what it was asked for."""

    def __init__(self, blocks: Mapping[Cid, bytes], name: str = "shelf") -> None:
        self.blocks, self._name = dict(blocks), name
        self.asked: list[Cid] = []

    @property
    def name(self) -> str:
        return self._name

    def fetch(self, cid: Cid) -> bytes:
        self.asked.append(cid)
        if cid not in self.blocks:
            raise BlockNotFoundError(cid, self.name)
        return self.blocks[cid]


class SilentShelf(Shelf):
    """Answers only once it is let go."""

    def __init__(self, blocks: Mapping[Cid, bytes], name: str = "silent") -> None:
        super().__init__(blocks, name)
        self.released = threading.Event()

    def fetch(self, cid: Cid) -> bytes:
        self.released.wait()
        return super().fetch(cid)


class Tape(Shelf):
    """A source that can also send a list of blocks as a stream."""

    def __init__(self, blocks: Mapping[Cid, bytes], sent: Iterator[tuple[Cid, bytes]]) -> None:
        super().__init__(blocks, "tape")
        self._sent = sent

    def stream(self, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        yield from self._sent


def file_of(data: bytes, chunker: Chunker | None = None) -> tuple[Built, Blocks]:
    """A file and all its blocks, in the order in which they were written."""
    blocks: Blocks = {}
    return build_file(io.BytesIO(data), blocks.__setitem__, chunker or FixedChunker(64)), blocks


def node(about: UnixFs | None, *links: Link) -> tuple[Cid, bytes]:
    """A block made by hand, which may say whatever it likes."""
    block = encode_node(links, about.encode() if about is not None else b"")
    return Cid.of(Codec.DAG_PB, block), block


def raw(data: bytes) -> tuple[Cid, bytes]:
    return Cid.of(Codec.RAW, data), data


def walk_over(blocks: Mapping[Cid, bytes], limits: Limits = DEFAULT_LIMITS) -> Walk:
    return Walk(DirectFeed(Fetcher(None, [Shelf(blocks)], limits=limits)), limits)


def read(blocks: Mapping[Cid, bytes], cid: Cid, limits: Limits = DEFAULT_LIMITS) -> bytes:
    return b"".join(bytes(piece.data) for piece in walk_over(blocks, limits).read(cid))
