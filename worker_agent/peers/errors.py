"""What goes wrong between workers."""

from trainyard.protocol.errors import PermanentError, TransientError


class PeerError(TransientError):
    """Another worker or a relay could not be reached, was lost, or said what makes no sense."""


class PeerRefusedError(PeerError):
    """Another worker understood what it was asked for, and does not give it; it says why."""


class OwnDiskError(TransientError):
    """What another worker gives cannot be kept here. That is nothing it could be blamed for."""


class IdentityError(PermanentError):
    """The key that this worker has for a task cannot be used."""
