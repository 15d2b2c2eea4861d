"""A source's files as verified copies on this machine. What training does not read stays away."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from trainyard.content.adding import add_path
from trainyard.content.chunking import FixedChunker, GearChunker
from trainyard.content.content import Content, Report
from trainyard.content.errors import NotFoundError
from trainyard.content.names import ContentPath
from trainyard.content.reading import Entry, EntryKind
from trainyard.datasets.arrays import SUFFIX
from trainyard.datasets.index import INDEX_NAME, LARGEST_INDEX_BYTES, OFFSETS_NAME
from trainyard.engine.columns import HEAD_BYTES, missing_feature
from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError
from trainyard.engine.shards import OFFSET_BYTES, read_index
from trainyard.protocol.manifest import Manifest, Source

# A member of an archive has two headers with its name, and what zip64 adds.
_MEMBER_BYTES = 1 << 10
# Most first: what `content add` does by itself, Kubo's larger blocks, and by content.
_WAYS_TO_CUT = (FixedChunker(), FixedChunker(1 << 20), GearChunker())


def fetch_source(
    source: Source, content: Content, scratch: Path, *, progress: Report | None = None
) -> Path:
    """Fetch the source's files below `scratch`, and say where they are.

    What an earlier try left is verified and kept. Processes that fetch the same wait for each
    other. Sizes are compared with the manifest first, so nothing is fetched that cannot be it.
    """
    path = ContentPath.parse(source.path)
    entry = content.stat(path)
    scratch.mkdir(parents=True, exist_ok=True)
    target = scratch / str(entry.cid)
    fetch = _Fetch(source, content, ContentPath(entry.cid), target, progress)
    with _alone(scratch / f"{entry.cid}.lock"):
        if source.kind == "tfrecord":
            fetch.shards(entry)
        elif entry.kind is EntryKind.DIRECTORY:
            fetch.arrays()
        else:
            fetch.archive(entry)
    return target


def declared_bytes(manifest: Manifest) -> int:
    """What the data takes on this machine, by what its manifest says of it."""
    validation = manifest.training.validation
    sources = (
        manifest.data.train,
        None if validation is None else validation.source,
        manifest.data.test,
    )
    return sum(
        _bytes_of(source, name) for source in sources if source is not None for name in source.used
    )


def _bytes_of(source: Source, name: str) -> int:
    tensor = source.features[name].tensor
    return source.records * prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def check_own(source: Source, content: Content, path: Path) -> None:
    """Refuse files of the user's own that are not what the source's address names."""
    named = ContentPath.parse(source.path)
    # What stands below a root has to be looked for; a root says by itself what it is.
    wanted = content.stat(named).cid if named.names else named.root
    found = None
    for way in _WAYS_TO_CUT:
        built = add_path(path.resolve(), lambda cid, block: None, way, lambda count: None)
        if built.cid == wanted:
            return
        found = found or built.cid
    raise DataMismatchError(
        f"{path} is {found}, and the manifest names {wanted}: give what was added as that, or "
        "leave the option out and it is fetched"
    )


class _Fetch:
    def __init__(
        self,
        source: Source,
        content: Content,
        root: ContentPath,
        target: Path,
        progress: Report | None,
    ) -> None:
        self._source, self._content, self._root = source, content, root
        self._target, self._progress = target, progress

    def arrays(self) -> None:
        self._target.mkdir(exist_ok=True)
        names = self._content.links(self._root)
        for name in self._source.used:
            if name + SUFFIX not in names:
                found = [link.removesuffix(SUFFIX) for link in names if link.endswith(SUFFIX)]
                raise missing_feature(name, self._source.path, found)
        sizes = [self._size(name + SUFFIX) for name in self._source.used]
        self._content.foresee(sum(sizes), self._source.path)
        for name in self._source.used:
            self._get(name + SUFFIX, least=0, most=self._array_bytes(name) + HEAD_BYTES)

    def _array_bytes(self, name: str) -> int:
        return _bytes_of(self._source, name)

    def archive(self, entry: Entry) -> None:
        """An `.npz` file, which is fetched whole: so it may hold no more than the manifest says."""
        if entry.kind is not EntryKind.FILE:
            raise DataError(f"{self._source.path} is a {entry.kind} where a file is due")
        features = self._source.features
        values = sum(self._array_bytes(name) for name in features)
        # What cannot be compressed gets longer by less than a thousandth.
        most = values + values // 1000 + (len(features) + 1) * (HEAD_BYTES + _MEMBER_BYTES)
        if entry.size > most:
            raise CorruptDataError(
                f"{self._source.path} has the wrong length: it has {entry.size} bytes where {most} "
                "are the most that the manifest's features can take; name all that is in it, or "
                "add its arrays as a folder"
            )
        self._content.get(ContentPath(entry.cid), self._target, progress=self._progress)

    def shards(self, entry: Entry) -> None:
        if entry.kind is not EntryKind.DIRECTORY:
            raise DataError(
                f"{self._source.path} is a {entry.kind} where a folder of shards is due"
            )
        (self._target / OFFSETS_NAME).mkdir(parents=True, exist_ok=True)
        self._get(INDEX_NAME, least=1, most=LARGEST_INDEX_BYTES)
        index = read_index(
            self._source,
            (self._target / INDEX_NAME).read_bytes(),
            f"{self._source.path}/{INDEX_NAME}",
        )
        offsets = sum(shard.records + 1 for shard in index.shards) * OFFSET_BYTES
        total = offsets + sum(shard.bytes for shard in index.shards)
        self._content.foresee(total, self._source.path)
        for shard in index.shards:
            size = (shard.records + 1) * OFFSET_BYTES
            self._get(OFFSETS_NAME, shard.offsets_name, least=size, most=size)
            self._get(shard.name, least=shard.bytes, most=shard.bytes)

    def _size(self, name: str) -> int:
        return self._content.stat(ContentPath(self._root.root, (name,))).size

    def _get(self, *names: str, least: int, most: int) -> None:
        where = "/".join((self._source.path, *names))
        path = ContentPath(self._root.root, names)
        try:
            entry = self._content.stat(path)
        except NotFoundError as error:
            raise DataError(f"{where} is missing") from error
        if entry.kind is not EntryKind.FILE:
            raise DataError(f"{where} is a {entry.kind} where a file is due")
        if not least <= entry.size <= most:
            raise CorruptDataError(
                f"{where} {'is empty' if not entry.size else 'has the wrong length'}: it has "
                f"{entry.size} bytes where {least if entry.size < least else most} "
                f"{'are the least' if entry.size < least else 'are the most'} it can have"
            )
        self._content.get(
            ContentPath(entry.cid), self._target.joinpath(*names), progress=self._progress
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
