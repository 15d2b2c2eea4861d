"""What can go wrong with a market on one machine."""

from trainyard.protocol.errors import PermanentError


class DevnetError(PermanentError):
    """The devnet cannot do what was asked; the message says why, and what helps."""


class NotRunningError(DevnetError):
    """There is no devnet in the folder, or it does not run."""


class AlreadyRunningError(DevnetError):
    """A devnet runs in the folder already."""
