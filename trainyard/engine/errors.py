"""What can be wrong with what a run is made from."""

from trainyard.protocol.errors import PermanentError


class DataError(PermanentError):
    """Data that a run cannot be fed with."""


class DataMismatchError(DataError):
    """Data that is not what the manifest says: other features, types, shapes, or records."""


class CorruptDataError(DataError):
    """Data that is damaged: a checksum that fails, a file cut short, a record out of place."""


class StateError(PermanentError):
    """A training state that cannot be read, written, or put into this model."""


class RunError(PermanentError):
    """A run that cannot go on as it is; the message says what to change."""


class OtherRunError(RunError):
    """A run that is sound, perhaps, but is not the one that was asked for."""


class TooLargeError(RunError):
    """A file that is larger than any of its kind in this run, and was not read for that."""


class WrongAuditError(RunError):
    """An audit of a kind that runs of this mode do not have."""
