"""Keeps the memory of a process that holds a key from others of the same user."""

import ctypes
import os
import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> None:
    """From now on no other process may read this one, and no core dump is made of it.

    What it starts is not hidden: that ends when another program is executed. Other systems than
    Linux have no such call.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot hide the memory with the key: {os.strerror(number)}")
