"""A Kubo node as a store and a source of blocks.

Kubo checks what is put into it, but not what it reads back from its disk: like any source, it is
not believed before its answer is verified.
"""

import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from trainyard.content.car import read_car
from trainyard.content.cid import Cid, Codec
from trainyard.content.errors import (
    BlockNotFoundError,
    InvalidCidError,
    LimitExceededError,
    MalformedBlockError,
    NotFoundError,
    SourceError,
    SourceTimeoutError,
    StoreError,
    UnavailableError,
)
from trainyard.content.kubo_batch import LOT_BYTES, LOT_LIFE_S, KuboBatch, is_pinned, lot_time
from trainyard.content.kubo_rpc import KuboAnswerError, KuboRpc
from trainyard.content.kubo_stream import Buffered, has_raw_leaves, stream_file
from trainyard.content.limits import DEFAULT_LIMITS, Limits
from trainyard.content.ports import Batch, Usage
from trainyard.protocol.errors import TransientError

_MOST_HINTS = 32
_OFFLINE = ("offline", "true")


@dataclass(frozen=True, slots=True)
class Hint:
    """How a connection to a peer went; `error` is None where it stands."""

    address: str
    error: str | None


class KuboStore:
    """`ContentStore` and `StreamingSource` over one node's RPC. Safe to use from many threads."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 30.0,
        peer_timeout_s: float = 20.0,
        limits: Limits = DEFAULT_LIMITS,
        lot_bytes: int = LOT_BYTES,
    ) -> None:
        """`timeout_s`: the longest silence of the node; `peer_timeout_s`: of those it asks."""
        self._rpc = KuboRpc(address, timeout_s=timeout_s)
        self._peer_timeout_s, self._limits, self._lot_bytes = peer_timeout_s, limits, lot_bytes

    @property
    def name(self) -> str:
        return self._rpc.name

    def close(self) -> None:
        self._rpc.close()

    # --- As a source

    def fetch(self, cid: Cid) -> bytes:
        """From the node's disk, else from its peers if it has any."""
        if cid.inline is not None:
            return cid.inline
        try:
            return self._block(cid, _OFFLINE)
        except BlockNotFoundError:
            if not self._has_peers():
                raise
        return self._block(cid, timeout_s=self._peer_timeout_s)

    def stream(self, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        """Files come through `cat` and are cut where their nodes say: Kubo's exports take twice as
        long. Everything else comes as a CAR."""
        block = self.fetch(root)
        if root.codec is Codec.RAW:
            yield root, block
        elif has_raw_leaves(root, block):
            arguments = (("arg", str(root)), ("progress", "false"))
            with self._rpc.stream("cat", *arguments, bare=True) as answer:
                yield from stream_file(
                    self.name, root, block, self.fetch, Buffered(answer), self._limits
                )
        else:
            with self._rpc.stream(
                "dag/export", ("arg", str(root)), ("progress", "false")
            ) as answer:
                try:
                    yield from read_car(Buffered(answer), self._limits)
                except (MalformedBlockError, LimitExceededError) as error:
                    raise SourceError(self.name, f"the DAG of {root}: {error}") from error

    # --- As a store

    def has(self, cid: Cid) -> bool:
        if cid.inline is not None:
            return True
        try:
            self._rpc.call("block/stat", ("arg", str(cid)), _OFFLINE)
        except KuboAnswerError as error:
            if _says_absent(error):
                return False
            raise
        return True

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        batch = KuboBatch(self._rpc, self._lot_bytes)
        try:
            yield batch
            batch.finish()
        finally:
            batch.close()

    def discard(self, cid: Cid) -> None:
        """Remove a bad block. Kubo does not let go of one that is pinned."""
        with self._as_store_error(f"cannot remove {cid}"):
            for line in self._rpc.lines("block/rm", ("arg", str(cid)), ("force", "true")):
                if line.get("Error"):
                    raise SourceError(
                        self.name,
                        f"{line['Error']}; stop the node and run 'ipfs repo verify --drop' there",
                    )

    def pin(self, root: Cid) -> None:
        try:
            if is_pinned(self._rpc, root):
                return
            if not self._has_peers():
                # Kubo would wait for peers to come; this says at once what is missing.
                self._rpc.call("dag/stat", ("arg", str(root)), ("progress", "false"), _OFFLINE)
            self._pin_while_it_moves(root)
        except KuboAnswerError as error:
            if _says_absent(error):
                raise UnavailableError(root, [error]) from error
            raise StoreError(f"cannot pin {root}: {error}") from error
        except SourceTimeoutError as error:
            raise UnavailableError(root, [error]) from error
        except SourceError as error:
            raise StoreError(f"cannot pin {root}: {error}") from error

    def unpin(self, root: Cid) -> None:
        with self._as_store_error(f"cannot unpin {root}"):
            try:
                self._rpc.call("pin/rm", ("arg", str(root)))
            except KuboAnswerError as error:
                if "not pinned" in error.message or "pinned indirectly" in error.message:
                    raise NotFoundError(f"{self.name} has no pin on {root}") from error
                raise

    def pins(self) -> frozenset[Cid]:
        with self._as_store_error("cannot list pins"):
            return frozenset(root for root, sent_at in self._roots() if sent_at is None)

    def collect(self) -> Usage:
        """Blocks are counted; bytes are what the node's disk use went down by."""
        with self._as_store_error("cannot collect garbage"):
            for root, sent_at in self._roots():
                if sent_at is not None and sent_at < time.time() - LOT_LIFE_S:
                    with suppress(KuboAnswerError):
                        self._rpc.call("pin/rm", ("arg", str(root)))
            before = self.usage()
            removed = 0
            for line in self._rpc.lines("repo/gc", ("stream-errors", "true")):
                if line.get("Error"):
                    raise SourceError(self.name, f"repo/gc: {line['Error']}")
                removed += 1
            return Usage(removed, max(0, before.bytes - self.usage().bytes))

    def usage(self) -> Usage:
        with self._as_store_error("cannot measure the store"):
            stat = self._rpc.ask("repo/stat")
            return Usage(int(stat["NumObjects"]), int(stat["RepoSize"]))

    # --- What only a node can do

    def publish_mfs(self, path: str, cid: Cid) -> None:
        """Let `path` in the node's mutable files be `cid`, whatever was there before.

        A new entry appears in one step. Kubo has no step that replaces one: the new content is made
        ready beside the old, and for a moment between two calls the name is absent.
        """
        if not path.startswith("/") or path.endswith("/") or "//" in path:
            raise ValueError(f"{path!r} is no path of a mutable file: write /folder/name")
        source = ("arg", f"/ipfs/{cid}")
        with self._as_store_error(f"cannot publish {cid} as {path}"):
            if not self._is_in_mfs(path):
                self._rpc.call("files/cp", source, ("arg", path), ("parents", "true"))
                return
            beside = f"{path}.{secrets.token_hex(8)}"
            self._rpc.call("files/cp", source, ("arg", beside))
            self._rpc.call("files/rm", ("arg", path), ("recursive", "true"), ("force", "true"))
            self._rpc.call("files/mv", ("arg", beside), ("arg", path))

    def resolve_mfs(self, path: str) -> Cid:
        """What a path in the node's mutable files is now."""
        with self._as_store_error(f"cannot look up {path}"):
            try:
                stat = self._rpc.ask("files/stat", ("arg", path), ("cid-base", "base32"), _OFFLINE)
            except KuboAnswerError as error:
                if "does not exist" in error.message:
                    raise NotFoundError(f"{self.name} has no mutable file {path}") from error
                raise
            return Cid.parse(str(stat["Hash"]))

    def connect(self, peers: Sequence[str], *, timeout_s: float = 10.0) -> list[Hint]:
        """Connect the node to peers that may have what we want; a peer that fails is no error."""
        hints = list(dict.fromkeys(peers))
        tried = hints[:_MOST_HINTS]
        with ThreadPoolExecutor(max(1, min(8, len(tried)))) as pool:
            done = list(pool.map(lambda address: self._connect(address, timeout_s), tried))
        too_many = f"over {_MOST_HINTS} hints: not tried"
        return done + [Hint(address, too_many) for address in hints[_MOST_HINTS:]]

    def _connect(self, address: str, timeout_s: float) -> Hint:
        # A bare peer id would be looked up in a network that we may not be part of.
        if not address.startswith("/") or "/p2p/" not in address:
            return Hint(address, "no multiaddress that ends in /p2p/<peer id>")
        try:
            self._rpc.call("swarm/connect", ("arg", address), timeout_s=timeout_s)
        except SourceError as error:
            return Hint(address, str(error))
        return Hint(address, None)

    def _block(
        self, cid: Cid, *arguments: tuple[str, str], timeout_s: float | None = None
    ) -> bytes:
        try:
            with self._rpc.stream(
                "block/get", ("arg", str(cid)), *arguments, timeout_s=timeout_s
            ) as answer:
                # One byte more than allowed is enough to be refused.
                block = answer.read(self._limits.block_bytes + 1)
                # Only the read at the end tells whether the answer was cut short.
                if len(block) <= self._limits.block_bytes:
                    block += answer.read(1)
                return block
        except KuboAnswerError as error:
            if _says_absent(error):
                raise BlockNotFoundError(cid, self.name) from error
            raise

    def _has_peers(self) -> bool:
        return bool(self._rpc.ask("swarm/peers").get("Peers"))

    def _pin_while_it_moves(self, root: Cid) -> None:
        """Pinning may fetch for hours; only a standstill ends it."""
        pinned, seen, moved_at = False, -1, time.monotonic()
        for line in self._rpc.lines(
            "pin/add", ("arg", str(root)), ("progress", "true"), ("fast-provide-root", "false")
        ):
            pinned = pinned or bool(line.get("Pins"))
            if line.get("Progress", seen) != seen:
                seen, moved_at = line["Progress"], time.monotonic()
            if time.monotonic() - moved_at > self._peer_timeout_s:
                raise SourceTimeoutError(self.name, f"no further block of {root} came")
        if not pinned:
            raise SourceError(self.name, f"pin/add: broke off before {root} was pinned")

    def _roots(self) -> Iterator[tuple[Cid, int | None]]:
        """Every pinned root, and for a lot of a batch when it was sent."""
        lines: list[dict[str, Any]] = list(
            self._rpc.lines("pin/ls", ("type", "recursive"), ("stream", "true"))
        )
        for line in lines:
            with suppress(InvalidCidError):  # a kind of DAG that we have no use for
                root = Cid.parse(str(line["Cid"]))
                try:
                    sent_at = lot_time(root, lambda cid: self._block(cid, _OFFLINE))
                except BlockNotFoundError:
                    if not is_pinned(self._rpc, root):
                        continue  # let go since the list was made
                    sent_at = None
                yield root, sent_at

    def _is_in_mfs(self, path: str) -> bool:
        try:
            self._rpc.call("files/stat", ("arg", path), _OFFLINE)
        except KuboAnswerError as error:
            if "does not exist" in error.message:
                return False
            raise
        return True

    @contextmanager
    def _as_store_error(self, what: str) -> Iterator[None]:
        try:
            yield
        except (SourceError, BlockNotFoundError) as error:
            raise StoreError(f"{what}: {error}") from error


def _says_absent(error: TransientError) -> bool:
    return "could not find" in str(error) or "not found" in str(error)
