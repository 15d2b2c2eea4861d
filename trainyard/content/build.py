"""Building UnixFS files and directories block by block, with the CIDs that an IPFS node gives.

Memory stays bounded however long the stream is: of each level of the tree only the links that are
not yet in a parent are kept.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from trainyard.content.chunking import Chunker, FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link
from trainyard.content.hamt import build_shard
from trainyard.content.names import check_name
from trainyard.content.nodes import Built, Put, put_node
from trainyard.content.unixfs import Kind, UnixFs

LINKS_PER_NODE = 174
# A directory whose links' names and CIDs take more than this is sharded.
SHARD_ABOVE_BYTES = 256 * 1024


def build_file(
    stream: BinaryIO,
    put: Put,
    chunker: Chunker | None = None,
    advance: Callable[[int], None] | None = None,
) -> Built:
    """Cut `stream` into blocks, hand each to `put`, and name the whole."""
    tree = _Tree(put)
    for chunk in (chunker or FixedChunker()).cut(stream):
        cid = Cid.of(Codec.RAW, chunk)
        put(cid, chunk)
        tree.append(Built(cid, len(chunk), len(chunk)))
        if advance is not None:
            advance(len(chunk))
    return tree.root()


class _Tree:
    """A balanced tree: nodes of one level are filled from the left before the next begins."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._levels: list[list[Built]] = [[]]

    def append(self, child: Built, level: int = 0) -> None:
        if level == len(self._levels):
            self._levels.append([])
        row = self._levels[level]
        # A full row becomes a node only when more follows: else it may itself be the root's row.
        if len(row) == LINKS_PER_NODE:
            self._levels[level] = []
            self.append(self._node(row), level + 1)
            row = self._levels[level]
        row.append(child)

    def root(self) -> Built:
        if not self._levels[0]:
            empty = Cid.of(Codec.RAW, b"")
            self._put(empty, b"")
            return Built(empty, 0, 0)
        level = 0
        while level < len(self._levels) - 1 or len(self._levels[level]) > 1:
            self.append(self._node(self._levels[level]), level + 1)
            level += 1
        return self._levels[level][0]

    def _node(self, children: Sequence[Built]) -> Built:
        size = sum(child.size for child in children)
        about = UnixFs(
            Kind.FILE, file_size=size, block_sizes=tuple(child.size for child in children)
        )
        links = [Link(child.cid, "", child.total_bytes) for child in children]
        return put_node(self._put, links, about, size)


def build_directory(entries: Iterable[tuple[str, Built]], put: Put) -> Built:
    """Name a directory by its entries; large ones become a HAMT."""
    links = {}
    size = 0
    for name, child in entries:
        check_name(name)
        if name in links:
            raise ValueError(f"{name!r} is twice in one directory")
        links[name] = Link(child.cid, name, child.total_bytes)
        size += child.size
    estimate = sum(len(_raw(name)) + len(link.cid.encode()) for name, link in links.items())
    if estimate > SHARD_ABOVE_BYTES:
        return build_shard(links.values(), put, size)
    ordered = sorted(links.values(), key=lambda link: _raw(link.name))
    return put_node(put, ordered, UnixFs(Kind.DIRECTORY), size)


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
