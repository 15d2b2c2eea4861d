"""What the content plane asks of the world: somewhere to get blocks, and somewhere to keep them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trainyard.content.cid import Cid


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store holds, counted on disk."""

    blocks: int
    bytes: int


class BlockSource(Protocol):
    """Somebody who may have blocks. Nothing that it says is believed before it is verified."""

    @property
    def name(self) -> str:
        """How errors and progress name it, such as `gateway http://127.0.0.1:8080`."""

    def fetch(self, cid: Cid) -> bytes:
        """The bytes it gives for `cid`, not verified.

        Raises BlockNotFoundError, SourceTimeoutError or SourceError.
        """


@runtime_checkable
class StreamingSource(BlockSource, Protocol):
    """A source that can send a whole DAG in one answer."""

    def stream(self, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        """The blocks under `root`, depth first, not verified; a block may come once only.

        Raises as `fetch` does, at any point.
        """


class Batch(Protocol):
    """Blocks on their way into a store, visible to nobody's garbage collection."""

    def put(self, cid: Cid, block: bytes) -> None: ...

    def flush(self) -> None:
        """Bring what was put so far into the store: it is there even if the batch fails later.

        No collection takes it while the batch goes on.
        """

    def pin(self, root: Cid) -> None:
        """Keep everything under `root`, whose blocks are in the store or in this batch."""


class ContentStore(BlockSource, Protocol):
    """A place of our own where blocks are kept."""

    def has(self, cid: Cid) -> bool: ...

    def batch(self) -> AbstractContextManager[Batch]:
        """Put blocks and pin roots; all of it is on disk when the context ends without an error.

        Raises StoreError, for instance when the disk is full; what was put is then not pinned.
        """

    def pin(self, root: Cid) -> None:
        """Keep everything under `root`; UnavailableError if some of it is missing."""

    def unpin(self, root: Cid) -> None:
        """Stop keeping `root`; NotFoundError if it was not pinned."""

    def pins(self) -> frozenset[Cid]: ...

    def collect(self) -> Usage:
        """Remove the blocks that no pin needs, and say how much that was."""

    def usage(self) -> Usage: ...


@runtime_checkable
class HealingStore(ContentStore, Protocol):
    """A store in which a block that went bad can be replaced."""

    def discard(self, cid: Cid) -> None:
        """Put a bad block aside."""
