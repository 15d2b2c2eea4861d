"""A network of one's own, in which only the loopback address exists.

TensorFlow's server listens on every address that there is, asks nobody who they are, and runs what
it is sent. Processes that only have each other to talk to are put where nobody else is.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

from trainyard.engine.errors import RunError

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_REQUEST = struct.Struct("16sH14x")


def seclude() -> None:
    """Move this process, which must have one thread, and its later children into such a network."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        # Who may not do so may in a name space of users, as the same user.
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise RunError(
                f"this machine does not let the workers have a network of their own ({reason}): "
                "allow user name spaces (sysctl user.max_user_namespaces), or run as root"
            )
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, _SIOCGIFFLAGS, _REQUEST.pack(b"lo", 0))
        _, flags = _REQUEST.unpack(request)
        fcntl.ioctl(control, _SIOCSIFFLAGS, _REQUEST.pack(b"lo", flags | _IFF_UP))
