"""What can be wrong with a data set."""

from trainyard.protocol.errors import PermanentError


class DatasetError(PermanentError):
    """Records or arrays that cannot become a data set, or a tree that is none."""


class MismatchError(DatasetError, ValueError):
    """A record or array that does not have the names, types or shapes of the others."""


class CorruptRecordError(DatasetError):
    """A record whose checksum, encoding or place is wrong.

    Its block matched the CID, so whoever published the data set published it like this.
    """
