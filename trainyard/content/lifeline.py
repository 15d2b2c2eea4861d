"""Children that do not outlive their parent, however it ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec nothing should be looked up.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def dying_with_parent(niceness: int = 0) -> Callable[[], None]:
    """A `preexec_fn` with which the kernel kills the child when its parent ends.

    The parent is the *thread* that starts the child, so that thread has to live as long as the
    child may. Other systems than Linux have no such call; there only an orderly end stops it.
    """
    parent = os.getpid()

    def prepare() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before we asked
                os._exit(1)
        if niceness:
            os.nice(niceness)

    return prepare
