"""The sockets in the folder that a worker shares with its sandbox.

What runs in the sandbox can write there too, so no name in the folder is trusted: a link would lead
out of it.
"""

import asyncio
import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

from worker_agent.peers.wire import tune

IN = "in"
_BUFFER_BYTES = 1 << 20
_LOOK_EVERY_S = 0.05


def to(slot: int) -> str:
    return f"to-{slot}"


class Doors:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._folder)

    def listen(self, name: str) -> socket.socket:
        self.remove(name)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # By way of the open folder: the name of a socket has at most 107 letters.
            sock.bind(f"/proc/self/fd/{self._folder}/{name}")
            sock.listen(64)
            sock.setblocking(False)
        except BaseException:
            sock.close()
            raise
        return sock

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    async def enter(self, patience_s: float) -> socket.socket:
        """Connect to what runs in the sandbox, and wait for it if it is only starting."""
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    return await self._connect(IN)
                except (FileNotFoundError, ConnectionRefusedError):
                    await asyncio.sleep(_LOOK_EVERY_S)

    async def _connect(self, name: str) -> socket.socket:
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=self._folder)
        try:
            if not stat.S_ISSOCK(os.fstat(handle).st_mode):
                raise OSError(errno.ENOTSOCK, f"{name!r} of the sandbox is no socket")
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                widen(sock)
                await asyncio.get_running_loop().sock_connect(sock, f"/proc/self/fd/{handle}")
            except BaseException:
                sock.close()
                raise
        finally:
            os.close(handle)
        return sock


def widen(sock: socket.socket) -> None:
    """A whole vector of a training step should fit into the socket."""
    tune(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
