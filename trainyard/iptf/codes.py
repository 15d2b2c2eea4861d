"""TensorFlow's status codes, and which of them says what went wrong."""

import errno
from enum import IntEnum

from trainyard.content.errors import (
    CorruptBlockError,
    InvalidCidError,
    InvalidPathError,
    IsADirectoryContentError,
    LimitExceededError,
    MalformedBlockError,
    NotADirectoryContentError,
    NotFoundError,
    SourceTimeoutError,
    StoreError,
    UnavailableError,
)
from trainyard.protocol.errors import PermanentError, TransientError


class Code(IntEnum):
    """The numbers of `TF_Code`, and one of our own."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    # The gate was restarted and has forgotten the handle; the plugin opens the file again.
    UNKNOWN_HANDLE = 255


class ReadOnlyError(PermanentError):
    """Something under a CID was to be changed."""


class UnknownHandleError(TransientError):
    """A handle that this gate did not give, or has taken back."""


_BY_ERRNO = {
    errno.ENOENT: Code.NOT_FOUND,
    errno.EEXIST: Code.ALREADY_EXISTS,
    errno.ENOTDIR: Code.FAILED_PRECONDITION,
    errno.EISDIR: Code.FAILED_PRECONDITION,
    errno.ENOTEMPTY: Code.FAILED_PRECONDITION,
    errno.ELOOP: Code.FAILED_PRECONDITION,
    errno.EINVAL: Code.FAILED_PRECONDITION,
    errno.EACCES: Code.PERMISSION_DENIED,
    errno.EPERM: Code.PERMISSION_DENIED,
    errno.EROFS: Code.PERMISSION_DENIED,
    errno.ENOSPC: Code.RESOURCE_EXHAUSTED,
    errno.EDQUOT: Code.RESOURCE_EXHAUSTED,
    errno.EFBIG: Code.RESOURCE_EXHAUSTED,
    errno.EMFILE: Code.RESOURCE_EXHAUSTED,
    errno.ENFILE: Code.RESOURCE_EXHAUSTED,
    errno.ENAMETOOLONG: Code.INVALID_ARGUMENT,
}

_BY_KIND: tuple[tuple[type[Exception], Code], ...] = (
    (InvalidCidError, Code.INVALID_ARGUMENT),
    (InvalidPathError, Code.INVALID_ARGUMENT),
    (NotFoundError, Code.NOT_FOUND),
    (NotADirectoryContentError, Code.FAILED_PRECONDITION),
    (IsADirectoryContentError, Code.FAILED_PRECONDITION),
    (LimitExceededError, Code.RESOURCE_EXHAUSTED),
    # The bytes are those of the CID, and are no file all the same.
    (MalformedBlockError, Code.DATA_LOSS),
    (CorruptBlockError, Code.DATA_LOSS),
    (SourceTimeoutError, Code.DEADLINE_EXCEEDED),
    (ReadOnlyError, Code.PERMISSION_DENIED),
    (UnknownHandleError, Code.UNKNOWN_HANDLE),
    (TransientError, Code.UNAVAILABLE),
)


def code_of(error: Exception) -> Code:
    """The code under which TensorFlow raises `error`."""
    if isinstance(error, UnavailableError):
        if error.corrupt:
            return Code.DATA_LOSS
        return Code.DEADLINE_EXCEEDED if error.timed_out else Code.UNAVAILABLE
    if isinstance(error, StoreError) and isinstance(error.__cause__, OSError):
        full = _BY_ERRNO.get(error.__cause__.errno or 0) is Code.RESOURCE_EXHAUSTED
        return Code.RESOURCE_EXHAUSTED if full else Code.UNAVAILABLE
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0, Code.INTERNAL)
    for kind, code in _BY_KIND:
        if isinstance(error, kind):
            return code
    return Code.INTERNAL
