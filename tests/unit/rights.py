"""What root may do and others may not, for tests that root runs too."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534
_libc = ctypes.CDLL(None)


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """This thread, and no other, meets files as a user who owns none of them."""
    if os.geteuid() != 0:
        yield
        return
    _libc.setfsuid(_NOBODY)
    try:
        yield
    finally:
        _libc.setfsuid(0)
