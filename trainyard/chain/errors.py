"""What can go wrong between us and the chain."""

from collections.abc import Sequence

from trainyard.protocol.errors import PermanentError, TransientError


class EndpointError(TransientError):
    """An endpoint could not be asked, or gave no usable answer; another one may."""

    def __init__(self, endpoint: str, why: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{endpoint}: {why}")
        self.endpoint, self.why, self.retry_after_s = endpoint, why, retry_after_s


class RangeRefusedError(EndpointError):
    """An endpoint that will not answer about so many blocks at once; fewer may do."""


class NodeRefusedError(EndpointError):
    """A node that understood the request and said no."""

    def __init__(self, endpoint: str, code: int, message: str) -> None:
        super().__init__(endpoint, f"it refused: {message} (code {code})")
        self.code, self.message = code, message


class NoEndpointError(TransientError):
    """No endpoint can be used now; carries what each of them did."""

    def __init__(self, failures: Sequence[str], retry_in_s: float) -> None:
        super().__init__(
            f"no endpoint can be used, try again in {retry_in_s:.1f} s: {'; '.join(failures)}"
        )
        self.failures, self.retry_in_s = tuple(failures), retry_in_s


class WrongChainError(PermanentError):
    """An endpoint of another chain. It is never asked anything else."""

    def __init__(self, endpoint: str, found: int, expected: int) -> None:
        super().__init__(
            f"{endpoint} serves chain {found}, not {expected}: remove it, or name the right chain"
        )
        self.endpoint = endpoint


class RevertedError(PermanentError):
    """The contract refused a call; the message is its reason as a sentence."""

    def __init__(self, sentence: str, data: bytes = b"") -> None:
        super().__init__(sentence)
        self.data = data


class UnknownLogError(PermanentError):
    """The market emitted something that this version has no ABI of: it must be updated."""


class ReorgTooDeepError(PermanentError):
    """The chain changed further back than the cursor can follow; the message says what to do."""


class StoreError(PermanentError):
    """A store that cannot be used: of another market or version, or in a batch's way."""


class StoreUnavailableError(TransientError):
    """The store could not be written now, such as when the disk is full. Nothing was changed."""


class IntentConflictError(PermanentError):
    """One key was given to two different transactions."""
