"""Whether all that a manifest names is in reach: down to the last leaf, and not the roots alone."""

import time
from contextlib import suppress

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.dag import Node, decode_node
from trainyard.content.fetching import ParallelFeed
from trainyard.content.hamt import PREFIX
from trainyard.content.names import ContentPath
from trainyard.content.reading import Walk
from trainyard.content.unixfs import Kind, decode_unixfs
from trainyard.protocol.errors import TransientError
from trainyard.protocol.manifest import Manifest

_MOST_BLOCKS, _LONGEST_S = 200_000, 20.0
_AHEAD = 16


class Look:
    """A look through all that a manifest names. A stranger's one may name as much as it likes, so
    that the look ends after so many blocks, so many bytes of others, or so long a time."""

    def __init__(
        self,
        manifest: Manifest,
        most_bytes: int,
        *,
        most_blocks: int = _MOST_BLOCKS,
        longest_s: float = _LONGEST_S,
    ) -> None:
        self._named = _named_by(manifest)
        self._most_bytes, self._most_blocks = most_bytes, most_blocks
        self._longest_s = longest_s
        self._part, self._path = "", ""
        self._ends_at, self._fetched = 0.0, 0
        self.blocks = 0

    @property
    def where(self) -> str:
        """What is looked at: where a look fails, this is what is missing."""
        return f"{self._part} ({self._path})"

    def through(self, content: Content) -> bool:
        """Whether the look came to its end; an error of content where something cannot be got."""
        self._ends_at, self._fetched = time.monotonic() + self._longest_s, 0
        self.blocks = 0
        seen = set[Cid]()
        return all(self._below(content, *named, seen) for named in self._named.items())

    def _below(self, content: Content, part: str, path: ContentPath, seen: set[Cid]) -> bool:
        self._part, self._path = part, str(path)
        feed = ParallelFeed(content.fetcher)
        root = Walk(feed, content.limits).resolve(path)
        stack = [(root, self._path)] if self._is_new(root, seen) else []
        while stack:
            if self._has_enough:
                return False
            feed.want([cid for cid, _ in reversed(stack[-_AHEAD:])])
            cid, self._path = stack.pop()
            arrived = feed.take(cid)
            if arrived.source != content.store.name:
                self._fetched += len(arrived.block)
            if cid.codec is not Codec.DAG_PB:
                continue
            for name, child in reversed(_children(decode_node(arrived.block))):
                if not self._is_new(child, seen):
                    continue
                if self._has_enough:
                    return False
                if child.codec is Codec.DAG_PB or not _is_here(content, child):
                    stack.append((child, f"{self._path}/{name}" if name else self._path))
        return True

    def _is_new(self, cid: Cid, seen: set[Cid]) -> bool:
        if cid in seen:
            return False
        seen.add(cid)
        self.blocks += 1
        return True

    @property
    def _has_enough(self) -> bool:
        return (
            self.blocks > self._most_blocks
            or self._fetched > self._most_bytes
            or time.monotonic() >= self._ends_at
        )


def _named_by(manifest: Manifest) -> dict[str, ContentPath]:
    """The parts of a manifest that are content."""
    validation = manifest.training.validation
    sources = {
        "data.train": manifest.data.train,
        "data.test": manifest.data.test,
        "training.validation": None if validation is None else validation.source,
    }
    found = {
        part: ContentPath.parse(source.path)
        for part, source in sources.items()
        if source is not None
    }
    if manifest.initial_state is not None:
        found["initial_state"] = ContentPath.parse(manifest.initial_state)
    return found


def _children(node: Node) -> list[tuple[str, Cid]]:
    """What a node leads to; pieces of a file and of a large directory have no names."""
    kind = decode_unixfs(node.data).kind if node.data else Kind.DIRECTORY
    if kind is Kind.DIRECTORY:
        return [(link.name, link.cid) for link in node.links]
    if kind is Kind.HAMT_SHARD:
        return [(link.name[PREFIX:], link.cid) for link in node.links]
    return [("", link.cid) for link in node.links]


def _is_here(content: Content, leaf: Cid) -> bool:
    """Whether nobody has to send it; a store that is away has nothing."""
    if leaf.inline is not None:
        return True
    with suppress(TransientError):
        return content.store.has(leaf)
    return False
