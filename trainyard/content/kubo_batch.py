"""Blocks on their way into a Kubo, safe from its garbage collection from the first to the last.

Blocks wait in a temporary file and go over in one CAR. A large batch sends them in lots, some
megabytes at a time, each under a node of its own that Kubo pins while it holds its lock. The last
CAR brings the rest and pins the roots in the same way, and then the lots are let go. So at no time
does a block of the batch lie in the node without a pin, and none has to be sent twice. A lot names
its owner and its time, so that those of a process that died can be cleared.

A lot has its blocks as bare bytes, whatever they are: a pin of a node would ask for all below it,
of which much is still to come. Kubo keeps and collects blocks by their hash, so that does for both.
"""

import contextlib
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from trainyard.content.car import write_car
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, decode_node, encode_node
from trainyard.content.errors import (
    MalformedBlockError,
    SourceError,
    SourceTimeoutError,
    StoreError,
    UnavailableError,
)
from trainyard.content.kubo_rpc import KuboAnswerError, KuboRpc, Upload
from trainyard.content.limits import MIB

LOT_BYTES = 64 * MIB
# Long past what any batch takes; a lot older than this belongs to nobody.
LOT_LIFE_S = 7 * 24 * 3600
# The node over a lot's blocks stays far below the largest block that a node takes.
_LOT_BLOCKS = 16_000
_IN_MEMORY_BYTES = 4 * MIB
_PIECE_BYTES = 256 * 1024
_SLOWEST_BYTES_PER_S = 8 * MIB
_MARK = b"trainyard batch "


class KuboBatch:
    """See `ContentStore.batch`. `put` and `pin` may be called from several threads."""

    def __init__(self, rpc: KuboRpc, lot_bytes: int = LOT_BYTES) -> None:
        self._rpc, self._lot_bytes = rpc, lot_bytes
        self._waiting = _Spool()
        self._roots: dict[Cid, None] = {}
        self._lots: list[Cid] = []
        self._sent_bytes = 0
        self._lock = threading.Lock()

    def put(self, cid: Cid, block: bytes) -> None:
        if cid.inline is not None:
            return
        with self._lock, _as_store_error():
            self._waiting.add(Cid(Codec.RAW, cid.digest), block)
            if self._waiting.size >= self._lot_bytes or len(self._waiting.cids) >= _LOT_BLOCKS:
                self._send_lot()

    def flush(self) -> None:
        with self._lock, _as_store_error():
            if self._waiting.cids:
                self._send_lot()

    def pin(self, root: Cid) -> None:
        with self._lock:
            self._roots[root] = None

    def finish(self) -> None:
        """Send what is left, and pin the roots.

        After an error a root may be pinned all the same. It stays so: the pin may by now be that of
        somebody else who added the same, and one too many does no harm.
        """
        with self._lock, _as_store_error():
            roots = [root for root in self._roots if not is_pinned(self._rpc, root)]
            if not self._waiting.cids and not roots:
                return
            try:
                self._import(roots or [next(iter(self._waiting.cids))], pin=bool(roots))
            except SourceTimeoutError as error:
                if not roots:
                    raise
                # It looks for a block among its peers.
                raise UnavailableError(roots[0], [error]) from error

    def close(self) -> None:
        """Let go of the lots, whose blocks the roots' pins keep by now."""
        with self._lock:
            for lot in self._lots:
                try:
                    self._rpc.call("pin/rm", ("arg", str(lot)))
                    self._rpc.call("block/rm", ("arg", str(lot)), ("force", "true"))
                except KuboAnswerError:
                    continue  # it was never pinned
                except SourceError:
                    break  # a node that is gone; a later collection clears the lots
            self._lots = []
            self._waiting.close()

    def _send_lot(self) -> None:
        cids = list(self._waiting.cids)
        mark = f"{int(time.time())} {os.getpid()} {secrets.token_hex(16)}"
        block = encode_node([Link(cid, "", 0) for cid in cids], _MARK + mark.encode())
        lot = _lot_cid(block)
        self._waiting.add(lot, block)
        # Noted first: if the answer is lost, the pin may still be there.
        self._lots.append(lot)
        self._import([lot], pin=True)
        self._waiting.close()
        self._waiting = _Spool()

    def _import(self, roots: Sequence[Cid], *, pin: bool) -> None:
        header = b"".join(write_car(roots, ()))
        size = len(header) + self._waiting.size
        self._sent_bytes += size
        count = 0
        for line in self._rpc.lines(
            "dag/import",
            ("pin-roots", "true" if pin else "false"),
            ("stats", "true"),
            ("fast-provide-root", "false"),
            ("cid-base", "base32"),
            upload=Upload(chain([header], self._waiting.pieces()), size),
            # To pin, Kubo reads all that is under the root before it answers.
            timeout_s=self._rpc.timeout_s + self._sent_bytes / _SLOWEST_BYTES_PER_S,
        ):
            if why := (line.get("Root") or {}).get("PinErrorMsg"):
                root = Cid.parse(str(line["Root"]["Cid"]["/"]))
                raise UnavailableError(root, [SourceError(self._rpc.name, f"cannot pin it: {why}")])
            count = (line.get("Stats") or {}).get("BlockCount", count)
        expected = len(self._waiting.cids)
        if count != expected:
            raise StoreError(f"{self._rpc.name} took {count} of {expected} blocks")


class _Spool:
    """Sections of a CAR, in memory while they are few. A block that comes twice is kept once."""

    def __init__(self) -> None:
        self.cids: dict[Cid, None] = {}
        self.size = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115

    def add(self, cid: Cid, block: bytes) -> None:
        if cid in self.cids:
            return
        sections = write_car((), ((cid, block),))
        next(sections)  # the header
        for part in sections:
            self._file.write(part)
            self.size += len(part)
        self.cids[cid] = None

    def pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            yield piece

    def close(self) -> None:
        self._file.close()


def is_pinned(rpc: KuboRpc, root: Cid) -> bool:
    """Whether `root` is pinned with all that is under it.

    To be asked before pinning: Kubo takes an old pin away before it looks for the blocks, and if
    one is missing, neither the old nor the new pin is left.
    """
    try:
        rpc.call("pin/ls", ("arg", str(root)), ("type", "recursive"), ("offline", "true"))
    except SourceError as error:
        if "not pinned" in str(error):
            return False
        raise
    return True


def lot_time(root: Cid, fetch_block: Callable[[Cid], bytes]) -> int | None:
    """When a lot was sent, if `root` is that of one. Nothing else needs to be fetched to know."""
    if root.version != 0:
        return None
    try:
        data = decode_node(fetch_block(root)).data
        return int(data.removeprefix(_MARK).split()[0]) if data.startswith(_MARK) else None
    except (MalformedBlockError, ValueError, IndexError):
        return None


def _lot_cid(block: bytes) -> Cid:
    """Version 0, which no content of ours has: so lots are told from roots by their name."""
    return Cid(Codec.DAG_PB, Cid.of(Codec.DAG_PB, block).digest, version=0)


@contextlib.contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except SourceError as error:
        raise StoreError(f"cannot store blocks: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot keep blocks for a Kubo in a temporary file: {error}") from error
