"""Each way to fail has its TensorFlow code."""

import errno

import pytest

from trainyard.content.cid import Cid, Codec
from trainyard.content.errors import (
    BlockNotFoundError,
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
from trainyard.iptf.codes import Code, ReadOnlyError, code_of

CID = Cid.of(Codec.RAW, b"x")


def _store_error(number: int) -> StoreError:
    error = StoreError("the store")
    error.__cause__ = OSError(number, "why")
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnavailableError(CID, [CorruptBlockError(CID, "node", "why")]), Code.DATA_LOSS),
        (
            UnavailableError(CID, [SourceTimeoutError("a", "late"), BlockNotFoundError(CID, "b")]),
            Code.DEADLINE_EXCEEDED,
        ),
        (UnavailableError(CID, [BlockNotFoundError(CID, "node")]), Code.UNAVAILABLE),
        (UnavailableError(CID, []), Code.UNAVAILABLE),
        (NotFoundError("x"), Code.NOT_FOUND),
        (InvalidCidError("x"), Code.INVALID_ARGUMENT),
        (InvalidPathError("x"), Code.INVALID_ARGUMENT),
        (IsADirectoryContentError("x"), Code.FAILED_PRECONDITION),
        (NotADirectoryContentError("x"), Code.FAILED_PRECONDITION),
        (LimitExceededError("x"), Code.RESOURCE_EXHAUSTED),
        (MalformedBlockError("x"), Code.DATA_LOSS),
        (ReadOnlyError("x"), Code.PERMISSION_DENIED),
        (_store_error(errno.ENOSPC), Code.RESOURCE_EXHAUSTED),
        (_store_error(errno.EIO), Code.UNAVAILABLE),
        (OSError(errno.ENOSPC, "full"), Code.RESOURCE_EXHAUSTED),
        (OSError(errno.ENOENT, "no"), Code.NOT_FOUND),
        (OSError(errno.EEXIST, "is"), Code.ALREADY_EXISTS),
        (OSError(errno.EISDIR, "is"), Code.FAILED_PRECONDITION),
        (OSError(errno.EACCES, "no"), Code.PERMISSION_DENIED),
        (OSError(errno.EIO, "io"), Code.INTERNAL),
        (KeyError("a mistake of ours"), Code.INTERNAL),
    ],
)
def test_an_error_has_its_code(error: Exception, code: Code) -> None:
    assert code_of(error) is code
