"""The embedded store: blocks as files on this machine's disk, with nothing to install.

A batch is written aside, brought to disk, and only then moved into place, so a crash or a full disk
leaves whole blocks or none. Any number of processes may use one store: batches share a lock that
garbage collection takes alone.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.disk import sync_file_system, sync_folder, write_durably
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    InvalidCidError,
    MalformedBlockError,
    NotFoundError,
    SourceError,
    StoreError,
    UnavailableError,
)
from trainyard.content.ports import Usage
from trainyard.protocol.errors import TransientError

_LAYOUT = "trainyard content store 1\n"
# Blocks that wait to be written: bounds the memory of a batch.
_WAITING_BLOCKS = 8


class EmbeddedStore:
    """Blocks under `root`/blocks, pins under `root`/pins. Implements ContentStore."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._blocks, self._pins = root / "blocks", root / "pins"
        self._staging, self._bad = root / "staging", root / "bad"
        with _disk_errors(root):
            self._prepare()

    @property
    def name(self) -> str:
        return f"store {self.root}"

    @property
    def mutable_root(self) -> Path:
        """Where files stand that are still being written and have no CID yet."""
        return self.root / "mfs"

    def has(self, cid: Cid) -> bool:
        return cid.inline is not None or os.path.exists(self._path(cid))

    def fetch(self, cid: Cid) -> bytes:
        if cid.inline is not None:
            return cid.inline
        try:
            with open(self._path(cid), "rb", buffering=0) as file:
                return file.read()
        except FileNotFoundError:
            raise BlockNotFoundError(cid, self.name) from None
        except OSError as error:
            raise SourceError(self.name, f"cannot read {cid}: {error}") from error

    def discard(self, cid: Cid) -> None:
        """Move a block away that went bad, so that a good one can take its place."""
        with _disk_errors(self.root), self._locked(fcntl.LOCK_SH), suppress(FileNotFoundError):
            # Somebody may have put it right meanwhile.
            if cid.matches(Path(self._path(cid)).read_bytes()):
                return
            self._bad.mkdir(exist_ok=True)
            os.replace(self._path(cid), self._bad / cid.digest.hex())

    @contextmanager
    def batch(self) -> Iterator["_StagedBatch"]:
        with ExitStack() as held:
            with _disk_errors(self.root):
                held.enter_context(self._locked(fcntl.LOCK_SH))
                folder = Path(tempfile.mkdtemp(dir=self._staging))
                held.callback(shutil.rmtree, folder, ignore_errors=True)
            # What fails in here is the caller's, and no word about our disk.
            with _StagedBatch(self, folder) as batch:
                yield batch
                batch.flush()
            with _disk_errors(self.root):
                for root in batch.roots:
                    self._write_pin(root)

    def pin(self, root: Cid) -> None:
        with _disk_errors(self.root), self._locked(fcntl.LOCK_SH):
            self._write_pin(root)

    def unpin(self, root: Cid) -> None:
        with _disk_errors(self.root):
            try:
                (self._pins / str(root)).unlink()
            except FileNotFoundError:
                raise NotFoundError(f"{root} is not pinned in {self.name}") from None
            sync_folder(self._pins)

    def pins(self) -> frozenset[Cid]:
        found = set()
        for name in os.listdir(self._pins):
            with suppress(InvalidCidError):
                found.add(Cid.parse(name))
        return frozenset(found)

    def collect(self) -> Usage:
        with _disk_errors(self.root), self._locked(fcntl.LOCK_EX):
            needed: set[Cid] = set()
            for root in self.pins():
                self._mark(root, needed)
            names = {cid.digest.hex() for cid in needed}
            blocks = freed = 0
            for entry in self._block_files():
                if entry.name not in names:
                    freed += entry.stat().st_size
                    blocks += 1
                    os.unlink(entry.path)
            shutil.rmtree(self._bad, ignore_errors=True)
            return Usage(blocks, freed)

    def usage(self) -> Usage:
        sizes = [entry.stat().st_size for entry in self._block_files()]
        return Usage(len(sizes), sum(sizes))

    def _prepare(self) -> None:
        layout = self.root / "layout"
        if layout.exists():
            if layout.read_text() != _LAYOUT:
                raise StoreError(f"{self.root} holds a store of another layout; use another folder")
        else:
            if self.root.exists() and any(self.root.iterdir()) and not self._blocks.exists():
                raise StoreError(f"{self.root} is not empty and holds no store; use another folder")
            for folder in (self._blocks, self._pins, self._staging, self.mutable_root):
                folder.mkdir(parents=True, exist_ok=True)
            write_durably(layout, _LAYOUT.encode())
        self._sweep_staging()

    def _sweep_staging(self) -> None:
        """Remove what batches left behind whose process is gone, unless one is under way."""
        with suppress(BlockingIOError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
            for folder in self._staging.iterdir():
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with (self.root / "gc.lock").open("ab") as lock:
            fcntl.flock(lock, how)
            yield

    def _path(self, cid: Cid) -> str:
        return self._place(cid.digest.hex())

    def _place(self, name: str) -> str:
        return f"{self._blocks}/{name[:2]}/{name}"

    def _holds(self, name: str, block: bytes) -> bool:
        """Whether this very block is here; one that went bad is not, and is written again."""
        try:
            with open(self._place(name), "rb", buffering=0) as file:
                return file.read() == block
        except FileNotFoundError:
            return False

    def _block_files(self) -> Iterator["os.DirEntry[str]"]:
        for shard in os.scandir(self._blocks):
            yield from os.scandir(shard.path)

    def _land(self, folder: Path, names: Sequence[str]) -> None:
        # INVARIANT: a block's bytes are on disk before its name is in place.
        sync_file_system(folder)
        for shard in {name[:2] for name in names}:
            (self._blocks / shard).mkdir(exist_ok=True)
        for name in names:
            os.replace(folder / name, self._place(name))
        sync_file_system(self._blocks)

    def _write_pin(self, root: Cid) -> None:
        # INVARIANT: only what is whole is pinned, so collection can always follow a pin.
        for cid in self._reach(root):
            if not self.has(cid):
                raise UnavailableError(cid, [BlockNotFoundError(cid, self.name)])
        write_durably(self._pins / str(root), b"")

    def _mark(self, root: Cid, needed: set[Cid]) -> None:
        try:
            # By CID and not by digest: the same bytes have children as a node, and none as a leaf.
            for cid in self._reach(root, needed):
                needed.add(cid)
        except (TransientError, MalformedBlockError) as error:
            raise StoreError(
                f"{root} is pinned and damaged, so nothing was removed ({error}). "
                f"Fetch it again with 'trainyard content pin {root}', or unpin it."
            ) from error

    def _reach(self, root: Cid, known: set[Cid] | None = None) -> Iterator[Cid]:
        """Every CID under `root` once, except below what is `known`; only nodes are read."""
        seen: set[Cid] = set()
        stack = [root]
        while stack:
            cid = stack.pop()
            # A node may stand inside its own CID and still have links.
            inline_leaf = cid.inline is not None and cid.codec is not Codec.DAG_PB
            if cid in seen or inline_leaf or (known and cid in known):
                continue
            seen.add(cid)
            if cid.codec is Codec.DAG_PB:
                try:
                    block = self.fetch(cid)
                except BlockNotFoundError as error:
                    raise UnavailableError(cid, [error]) from error
                if not cid.matches(block):
                    bad = CorruptBlockError(cid, self.name, "its bytes have another hash")
                    raise UnavailableError(cid, [bad])
                stack += [link.cid for link in decode_node(block).links]
            yield cid


class _StagedBatch:
    """Blocks in a folder of their own, not yet in the store, written while the next is hashed."""

    def __init__(self, store: EmbeddedStore, folder: Path) -> None:
        self.roots: list[Cid] = []
        self._store, self._folder = store, folder
        self._put: set[str] = set()
        self._written: list[str] = []
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="batch")
        self._writing: deque[Future[None]] = deque()

    def __enter__(self) -> "_StagedBatch":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown(cancel_futures=True)

    def put(self, cid: Cid, block: bytes) -> None:
        name = cid.digest.hex()
        if name in self._put or cid.inline is not None:
            return
        self._put.add(name)
        if len(self._writing) >= _WAITING_BLOCKS:
            self._writing.popleft().result()
        self._writing.append(self._writer.submit(self._write, name, block))

    def pin(self, root: Cid) -> None:
        self.roots.append(root)

    def flush(self) -> None:
        while self._writing:
            self._writing.popleft().result()
        if self._written:
            with _disk_errors(self._store.root):
                self._store._land(self._folder, self._written)
            # From here on the store itself knows them, however many there will be.
            self._written = []
            self._put.clear()

    def _write(self, name: str, block: bytes) -> None:
        with _disk_errors(self._store.root):
            if self._store._holds(name, block):
                return
            with open(self._folder / name, "wb", buffering=0) as file:
                if file.write(block) != len(block):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._written.append(name)


@contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """Say what the disk refused, and what can be done."""
    try:
        yield
    except OSError as error:
        fix = "check that the folder exists and may be written to"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            fix = "free some space, or run 'trainyard content gc'; nothing of it was stored"
        raise StoreError(f"store {root}: {error.strerror or error}: {fix}") from error
