"""What can go wrong between a CID and its bytes."""

from typing import TYPE_CHECKING

from trainyard.protocol.errors import PermanentError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainyard.content.cid import Cid


class InvalidCidError(PermanentError, ValueError):
    """A text or byte string that names no content that we can verify."""


class InvalidPathError(PermanentError, ValueError):
    """A content path, or a name in a directory, that cannot be used safely."""


class MalformedBlockError(PermanentError):
    """A block whose bytes match its CID and yet are no valid node."""


class LimitExceededError(PermanentError):
    """Content larger, deeper or wider than the reader allows."""


class NotFoundError(PermanentError, LookupError):
    """A name that its directory does not have. Verified: no source can have it."""


class NotADirectoryContentError(PermanentError):
    """A path that goes on where a file ends, or a listing of a file."""


class IsADirectoryContentError(PermanentError):
    """Bytes were asked of a directory."""


class CorruptBlockError(TransientError):
    """A source answered with bytes that do not match the CID."""

    def __init__(self, cid: "Cid", source: str, why: str) -> None:
        super().__init__(f"{source} sent a corrupt block for {cid}: {why}")
        self.cid, self.source = cid, source


class SourceError(TransientError):
    """A source could not be asked, or gave no usable answer."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(f"{source}: {why}")
        self.source = source


class SourceTimeoutError(SourceError):
    """A source did not answer in time."""


class BlockNotFoundError(TransientError):
    """One source does not have the block."""

    def __init__(self, cid: "Cid", source: str) -> None:
        super().__init__(f"{source} does not have {cid}")
        self.cid, self.source = cid, source


class UnavailableError(TransientError):
    """No source had the block; carries what each of them said."""

    def __init__(self, cid: "Cid", failures: "Sequence[TransientError]") -> None:
        said = "; ".join(str(failure) for failure in failures) or "no source is configured"
        super().__init__(f"cannot get {cid}: {said}")
        self.cid, self.failures = cid, tuple(failures)

    @property
    def corrupt(self) -> bool:
        """Whether somebody sent wrong bytes: data loss, not mere absence."""
        return any(isinstance(failure, CorruptBlockError) for failure in self.failures)

    @property
    def timed_out(self) -> bool:
        return any(isinstance(failure, SourceTimeoutError) for failure in self.failures)


class StoreError(TransientError):
    """The local store could not write or read, such as when the disk is full."""
