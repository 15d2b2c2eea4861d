"""Walking files and directories over verified blocks.

A block that matches its CID was still written by a stranger: sizes, depths and counts are checked
as the walk goes, and a file is never larger than its parent said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, Node, decode_node
from trainyard.content.errors import (
    IsADirectoryContentError,
    LimitExceededError,
    MalformedBlockError,
    NotADirectoryContentError,
    NotFoundError,
)
from trainyard.content.fetching import Arrived, Feed
from trainyard.content.hamt import PREFIX, check_shard, find_in_shard
from trainyard.content.limits import Limits
from trainyard.content.names import ContentPath, check_name
from trainyard.content.unixfs import Kind, UnixFs, decode_unixfs


class EntryKind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory by name. `size` is a file's bytes, and 0 for a directory."""

    name: str
    cid: Cid
    kind: EntryKind
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Some verified bytes of a file, where they belong in it, and who sent them."""

    offset: int
    data: bytes | memoryview
    source: str


@dataclass(frozen=True, slots=True)
class Item:
    """A file or directory met in a walk; read a file's bytes before going on."""

    names: tuple[str, ...]
    entry: Entry
    pieces: Iterator[Piece]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A block, taken apart."""

    block: bytes
    node: Node | None
    about: UnixFs | None


@dataclass(frozen=True, slots=True)
class _Pending:
    cid: Cid
    start: int
    size: int | None
    depth: int


@dataclass(frozen=True, slots=True)
class _Place:
    """A block in a tree: how many folders it is in, and at which level of its file or folder."""

    cid: Cid
    folders: int
    levels: int

    def below(self, kind: Kind | None, link: Link) -> "_Place":
        is_entry = kind is Kind.DIRECTORY or (kind is Kind.HAMT_SHARD and len(link.name) > PREFIX)
        if is_entry:
            return _Place(link.cid, self.folders + 1, 0)
        return _Place(link.cid, self.folders, self.levels + 1)


class Walk:
    """One walk over a DAG, with a count of what it has met."""

    def __init__(self, feed: Feed, limits: Limits) -> None:
        self._feed, self._limits = feed, limits
        self._nodes = self._items = 0

    def stat(self, path: ContentPath) -> Entry:
        """What stands at `path`: NotFoundError where its directory has no such name."""
        cid = self.resolve(path)
        name = path.names[-1] if path.names else str(path.root)
        opened = self._open(cid)
        kind = _entry_kind(opened)
        return Entry(name, cid, kind, _size(opened) if kind is EntryKind.FILE else 0)

    def resolve(self, path: ContentPath) -> Cid:
        """The CID at the end of `path`, of which only the directories on the way are read."""
        cid = path.root
        for step in path.names:
            cid = self._step(cid, step, path)
        return cid

    def ls(self, cid: Cid, name: str = "") -> Iterator[Entry]:
        """The entries of a directory, each looked at, so that its kind and size are verified."""
        links = list(self.links(cid, name or str(cid)))
        for at, link in enumerate(links):
            self._feed.want([later.cid for later in links[at : at + 64]])
            opened = self._open(link.cid)
            kind = _entry_kind(opened)
            size = _size(opened) if kind is EntryKind.FILE else 0
            yield Entry(link.name, link.cid, kind, size)

    def links(self, cid: Cid, name: str) -> Iterator[Link]:
        """The names in a directory, sharded or not, without a look at what they name."""
        yield from self._named_links(self._open(cid), name, 0)

    def _named_links(self, opened: _Opened, name: str, depth: int) -> Iterator[Link]:
        names: set[str] = set()
        for link in self._directory_links(opened, name, depth, set()):
            check_name(link.name)
            # Else two readers could find two files under one name.
            if link.name in names:
                raise MalformedBlockError(f"{name} has {link.name!r} twice")
            names.add(link.name)
            if len(names) > self._limits.directory_entries:
                raise LimitExceededError(
                    f"{name} has over {self._limits.directory_entries} entries"
                )
            yield link

    def read(self, cid: Cid, offset: int = 0, length: int | None = None) -> Iterator[Piece]:
        """The bytes of a file from `offset` on, in order."""
        return self._read(cid, self._take(cid), offset, None if length is None else offset + length)

    def tree(self, cid: Cid, names: tuple[str, ...] = ()) -> Iterator[Item]:
        """Everything under `cid`, depth first, each block taken once: as a stream sends it."""
        arrived = self._take(cid)
        opened = _Opened(arrived.block, None, None)
        if cid.codec is Codec.DAG_PB:
            opened = self._decode(arrived.block, len(names))
        kind = _entry_kind(opened)
        size = _size(opened) if kind is EntryKind.FILE else 0
        entry = Entry(names[-1] if names else str(cid), cid, kind, size)
        self._items += 1
        if self._items > self._limits.directory_entries:
            raise LimitExceededError(f"over {self._limits.directory_entries} files in one tree")
        if kind is not EntryKind.DIRECTORY:
            yield Item(names, entry, self._read(cid, arrived, 0, None))
            return
        yield Item(names, entry, iter(()))
        for link in self._named_links(opened, entry.name, 0):
            yield from self.tree(link.cid, (*names, link.name))

    def raw_leaves(self, cid: Cid) -> Iterator[tuple[Cid, int, int]]:
        """CID, start and length of leaves, none fetched; ends at one that would have to be."""
        stack = [_Pending(cid, 0, None, 0)]
        while stack:
            pending = stack.pop()
            if pending.cid.codec is not Codec.RAW:
                opened = self._decode(self._take(pending.cid).block, pending.depth)
                if opened.about is None or opened.about.data:
                    return
                stack += reversed(self._children(pending, opened))
            elif pending.size is None or pending.size > self._limits.block_bytes:
                return
            else:
                yield pending.cid, pending.start, pending.size

    def _read(self, cid: Cid, first: Arrived, offset: int, end: int | None) -> Iterator[Piece]:
        stack = [_Pending(cid, 0, None, 0)]
        while stack:
            pending = stack.pop()
            if pending.depth:
                self._feed.want([pending.cid, *(later.cid for later in reversed(stack[-64:]))])
            arrived = self._take(pending.cid) if pending.depth else first
            if pending.cid.codec is Codec.RAW:
                _expect(pending, len(arrived.block))
                yield from _clip(pending.start, arrived, arrived.block, offset, end)
                continue
            opened = self._decode(arrived.block, pending.depth)
            children = self._children(pending, opened)
            inline = opened.about.data if opened.about is not None else b""
            yield from _clip(pending.start, arrived, inline, offset, end)
            wanted = [
                child
                for child in children
                # What has no bytes is not looked into: a tree of it could be without end.
                if child.size
                and (end is None or child.start < end)
                and child.start + child.size > offset
            ]
            stack += reversed(wanted)

    def blocks(self, root: Cid, *, once: bool = True) -> Iterator[tuple[Cid, bytes, str]]:
        """Every block under `root`, depth first, with its sender; `once`, or each time it comes."""
        seen: set[Cid] = set()
        stack = [_Place(root, 0, 0)]
        while stack:
            self._feed.want([place.cid for place in reversed(stack[-64:])])
            place = stack.pop()
            cid = place.cid
            if cid in seen:
                continue
            if once:
                seen.add(cid)
            arrived = self._take(cid)
            yield cid, arrived.block, arrived.source
            if cid.codec is Codec.DAG_PB:
                node = self._decode_node(arrived.block, max(place.folders, place.levels))
                kind = _kind(node)
                stack += [place.below(kind, link) for link in reversed(node.links)]

    def _step(self, cid: Cid, name: str, path: ContentPath) -> Cid:
        opened, level = self._open(cid), 0
        while True:
            if _entry_kind(opened) is not EntryKind.DIRECTORY or opened.node is None:
                raise NotADirectoryContentError(
                    f"{path}: {name!r} is asked of what is no directory"
                )
            if opened.about is None or opened.about.kind is Kind.DIRECTORY:
                for link in opened.node.links:
                    if link.name == name:
                        return link.cid
                raise NotFoundError(f"{path}: there is no {name!r}")
            check_shard(opened.about)
            found = find_in_shard(opened.node.links, name, level)
            if found is None:
                raise NotFoundError(f"{path}: there is no {name!r}")
            if len(found.name) > PREFIX:
                return found.cid
            opened, level = self._open(found.cid), level + 1

    def _directory_links(
        self, opened: _Opened, name: str, depth: int, shards: set[Cid]
    ) -> Iterator[Link]:
        if _entry_kind(opened) is not EntryKind.DIRECTORY or opened.node is None:
            raise NotADirectoryContentError(f"{name} is no directory")
        if opened.about is None or opened.about.kind is Kind.DIRECTORY:
            yield from opened.node.links
            return
        check_shard(opened.about)
        links = opened.node.links
        for at, link in enumerate(links):
            if len(link.name) < PREFIX:
                raise MalformedBlockError(f"{name}: a shard's link without its place")
            if len(link.name) > PREFIX:
                yield Link(link.cid, link.name[PREFIX:], link.total_bytes)
            else:
                deeper = [later.cid for later in links[at:] if len(later.name) == PREFIX]
                self._feed.want(deeper[:64])
                # Shards have names of their own in them: one that is met again only unfolds.
                if link.cid in shards:
                    raise MalformedBlockError(f"{name} has the shard {link.cid} twice")
                shards.add(link.cid)
                shard = self._open(link.cid, depth + 1)
                yield from self._directory_links(shard, name, depth + 1, shards)

    def _children(self, pending: _Pending, opened: _Opened) -> list[_Pending]:
        if _entry_kind(opened) is not EntryKind.FILE:
            raise IsADirectoryContentError(f"{pending.cid} is no file")
        assert opened.node is not None
        about = opened.about
        assert about is not None
        links, sizes = opened.node.links, about.block_sizes
        total = about.bytes_of_file(pending.cid, len(links))
        if total > self._limits.file_bytes:
            raise LimitExceededError(f"{pending.cid} has {total} bytes")
        _expect(pending, total)
        children, start = [], pending.start + len(about.data)
        for link, size in zip(links, sizes, strict=True):
            children.append(_Pending(link.cid, start, size, pending.depth + 1))
            start += size
        return children

    def _open(self, cid: Cid, depth: int = 0) -> _Opened:
        block = self._take(cid).block
        return _Opened(block, None, None) if cid.codec is Codec.RAW else self._decode(block, depth)

    def _take(self, cid: Cid) -> Arrived:
        return self._feed.take(cid)

    def _decode(self, block: bytes, depth: int) -> _Opened:
        node = self._decode_node(block, depth)
        return _Opened(block, node, decode_unixfs(node.data) if node.data else None)

    def _decode_node(self, block: bytes, depth: int) -> Node:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise LimitExceededError(f"over {self._limits.nodes} nodes in one walk")
        if depth > self._limits.depth:
            raise LimitExceededError(f"a tree deeper than {self._limits.depth} levels")
        node = decode_node(block)
        if len(node.links) > self._limits.links_per_node and _kind(node) is not Kind.DIRECTORY:
            raise LimitExceededError(f"a node of {len(node.links)} links")
        return node


def _kind(node: Node) -> Kind | None:
    """What a node stands for; None where it is no UnixFS."""
    try:
        return decode_unixfs(node.data).kind if node.data else None
    except MalformedBlockError:
        return None


def _entry_kind(opened: _Opened) -> EntryKind:
    if opened.node is None:
        return EntryKind.FILE
    if opened.about is None:
        raise MalformedBlockError("a node without UnixFS data is neither file nor directory")
    match opened.about.kind:
        case Kind.FILE | Kind.RAW:
            return EntryKind.FILE
        case Kind.DIRECTORY | Kind.HAMT_SHARD:
            return EntryKind.DIRECTORY
        case Kind.SYMLINK:
            return EntryKind.SYMLINK
    raise MalformedBlockError(f"UnixFS {opened.about.kind.name} is not supported")


def _size(opened: _Opened) -> int:
    if opened.about is None:
        return len(opened.block)
    return len(opened.about.data) + sum(opened.about.block_sizes)


def _expect(pending: _Pending, size: int) -> None:
    if pending.size is not None and pending.size != size:
        raise MalformedBlockError(
            f"{pending.cid} has {size} bytes where its parent says {pending.size}"
        )


def _clip(
    start: int, arrived: Arrived, data: bytes, offset: int, end: int | None
) -> Iterator[Piece]:
    """The part of `data`, which begins at `start`, that lies in the range asked for."""
    first = max(offset - start, 0)
    last = len(data) if end is None else min(end - start, len(data))
    if first < last:
        whole = first == 0 and last == len(data)
        part = data if whole else memoryview(data)[first:last]
        yield Piece(start + first, part, arrived.source)
