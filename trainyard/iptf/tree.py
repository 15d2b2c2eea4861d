"""One name space: `ipfs://<cid>/…`, `iptf://ipfs/<cid>/…` and `iptf://mfs/…`."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import (
    InvalidCidError,
    InvalidPathError,
    NotADirectoryContentError,
    NotFoundError,
)
from trainyard.content.names import ContentPath, check_name
from trainyard.content.reading import Entry, EntryKind
from trainyard.iptf.codes import ReadOnlyError
from trainyard.iptf.matching import compile_name, has_wildcard
from trainyard.iptf.mfs import Mfs

MFS = "iptf://mfs"
_IMMUTABLE = ("ipfs://", "iptf://ipfs/")
_KNOWN_ENTRIES = 1 << 16
_KNOWN_NAMES = 1 << 20
# A sharded directory can have very many blocks; for a few names only those on the way are read.
_ASKED_BEFORE_READ_WHOLE = 8
_ABSENT = (NotFoundError, NotADirectoryContentError, FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class MutablePath:
    """Names below iptf://mfs."""

    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join((MFS, *self.names))

    def child(self, name: str) -> "MutablePath":
        return MutablePath((*self.names, name))

    @property
    def parent(self) -> "MutablePath":
        return MutablePath(self.names[:-1])


@dataclass(frozen=True, slots=True)
class Top:
    """`iptf://` or `iptf://ipfs`, which are directories and have no bytes."""

    names: tuple[str, ...]


Place = ContentPath | MutablePath | Top
NamesOf = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class About:
    """What TensorFlow asks about a file or directory."""

    directory: bool
    size: int
    mtime_ns: int
    cid: Cid | None


def parse_uri(uri: str) -> Place:
    """Where a URI leads; raises InvalidCidError or InvalidPathError."""
    for prefix in _IMMUTABLE:
        if uri.startswith(prefix) and uri != "iptf://ipfs/":
            return ContentPath.parse(uri)
    scheme, found, rest = uri.partition("://")
    if found and scheme == "iptf":
        host, *names = rest.split("/")
        kept = tuple(name for name in names if name not in ("", "."))
        if host == "mfs":
            return MutablePath(tuple(check_name(name) for name in kept))
        if host == "":
            return Top(("ipfs", "mfs"))
        if host == "ipfs" and not kept:
            return Top(())
    raise InvalidPathError(
        f"{uri!r} leads nowhere: use ipfs://<cid>/path, iptf://ipfs/<cid>/path or iptf://mfs/path"
    )


class Tree:
    """Looks at both kinds of content. What stands under a CID is looked up once."""

    def __init__(self, content: Content, mfs: Mfs) -> None:
        self.content, self.mfs = content, mfs
        self._known: OrderedDict[ContentPath, Entry] = OrderedDict()
        self._folders: OrderedDict[Cid, dict[str, Cid]] = OrderedDict()
        self._asked: dict[Cid, int] = {}
        self._lock = Lock()

    def stat(self, uri: str) -> About:
        place = parse_uri(uri)
        if isinstance(place, Top):
            return About(True, 0, 0, None)
        if isinstance(place, MutablePath):
            found = self.mfs.stat(place.names)
            return About(found.directory, found.size, found.mtime_ns, None)
        entry = self.entry(place)
        return About(entry.kind is EntryKind.DIRECTORY, entry.size, 0, entry.cid)

    def ls(self, uri: str) -> list[tuple[str, About]]:
        """The entries of a directory and what is known of them, by name."""
        return list(self._ls(parse_uri(uri)))

    def names(self, uri: str) -> list[str]:
        """The names in a directory, without a look at what they name."""
        place = parse_uri(uri)
        if not isinstance(place, ContentPath):
            return [name for name, _ in self._ls(place)]
        folder = self.entry(place)
        if folder.kind is not EntryKind.DIRECTORY:
            raise NotADirectoryContentError(f"{uri} is a file")
        with self._lock:
            self._asked[folder.cid] = _ASKED_BEFORE_READ_WHOLE
        return sorted(self._links(folder.cid) or ())

    def match(self, pattern: str, names_of: NamesOf | None = None) -> list[str]:
        """The URIs that match a pattern, whose scheme, and CID if it has one, are literal.

        `names_of` lists a directory where not `names` itself does.
        """
        scheme, _, rest = pattern.partition("://")
        host, *names = rest.split("/")
        names = [name for name in names if name]
        base = f"{scheme}://{host}"
        if has_wildcard(base) or (base == "iptf://ipfs" and names and has_wildcard(names[0])):
            raise InvalidPathError(f"{pattern!r}: a pattern cannot stand for a CID")
        fixed = 0
        while fixed < len(names) and not has_wildcard(names[fixed]):
            fixed += 1
        start = "/".join((base, *names[:fixed]))
        if fixed == len(names):
            return [start] if self._exists(start) else []
        found = [start]
        for depth, name in enumerate(names[fixed:], fixed + 1):
            last = depth == len(names)
            found = list(self._matching(found, name, names_of or self.names, last=last))
        return sorted(found)

    def entry(self, path: ContentPath) -> Entry:
        with self._lock:
            if path in self._known:
                self._known.move_to_end(path)
                return self._known[path]
        if path.names:
            folder = self.entry(ContentPath(path.root, path.names[:-1]))
            entry = self._within(folder, path)
        else:
            entry = self.content.stat(path)
        self._remember(path, entry)
        return entry

    def _within(self, folder: Entry, path: ContentPath) -> Entry:
        """What `folder` has under the last name of `path`."""
        name = path.names[-1]
        if folder.kind is not EntryKind.DIRECTORY:
            raise NotADirectoryContentError(f"{path}: there is a file above {name!r}")
        links = self._links(folder.cid)
        if links is None:
            return self.content.stat(ContentPath(folder.cid, (name,)))
        if name not in links:
            raise NotFoundError(f"{path}: there is no {name!r}")
        return replace(self.content.stat(ContentPath(links[name])), name=name)

    def _links(self, folder: Cid) -> dict[str, Cid] | None:
        """The names of a directory, once enough of them were asked for to read it as a whole."""
        with self._lock:
            if folder in self._folders:
                self._folders.move_to_end(folder)
                return self._folders[folder]
            self._asked[folder] = self._asked.get(folder, 0) + 1
            if self._asked[folder] < _ASKED_BEFORE_READ_WHOLE:
                return None
        links = self.content.links(ContentPath(folder))
        with self._lock:
            self._asked.pop(folder, None)
            self._folders[folder] = links
            while len(self._folders) > 1 and sum(map(len, self._folders.values())) > _KNOWN_NAMES:
                self._folders.popitem(last=False)
        return links

    def _ls(self, place: Place) -> Iterator[tuple[str, About]]:
        if isinstance(place, Top):
            if not place.names:
                raise ReadOnlyError("iptf://ipfs holds all content there is and cannot be listed")
            for name in place.names:
                yield name, About(True, 0, 0, None)
        elif isinstance(place, MutablePath):
            for found in self.mfs.ls(place.names):
                yield found.name, About(found.directory, found.size, found.mtime_ns, None)
        else:
            for entry in self.content.ls(place):
                self._remember(place.child(entry.name), entry)
                directory = entry.kind is EntryKind.DIRECTORY
                yield entry.name, About(directory, entry.size, 0, entry.cid)

    def _matching(
        self, folders: list[str], pattern: str, names_of: NamesOf, *, last: bool
    ) -> Iterator[str]:
        if not has_wildcard(pattern):
            for folder in folders:
                if self._exists(f"{folder}/{pattern}"):
                    yield f"{folder}/{pattern}"
            return
        matches = compile_name(pattern)
        for folder in folders:
            try:
                names = names_of(folder)
            except _ABSENT:
                continue
            for name in filter(matches, names):
                path = f"{folder}/{name}"
                if last or self.stat(path).directory:
                    yield path

    def _exists(self, uri: str) -> bool:
        try:
            self.stat(uri)
        except _ABSENT:
            return False
        return True

    def _remember(self, path: ContentPath, entry: Entry) -> None:
        with self._lock:
            self._known[path] = entry
            if len(self._known) > _KNOWN_ENTRIES:
                self._known.popitem(last=False)


def mutable(uri: str) -> MutablePath:
    """Where a URI leads that is to be written; raises ReadOnlyError below a CID."""
    try:
        place = parse_uri(uri)
    except InvalidCidError:
        if not uri.startswith(_IMMUTABLE):
            raise
        place = Top(())
    if not isinstance(place, MutablePath):
        raise ReadOnlyError(f"{uri} cannot be changed: write below {MFS}, then publish")
    return place
