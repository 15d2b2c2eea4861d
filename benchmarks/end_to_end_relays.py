"""Relays before the gateways of a devnet, which count what passes from one party to another."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK_BYTES = 1 << 16
_TIMEOUT_S = 120.0


class Relay:
    """Hands connections on to a port of this machine, and counts the bytes of both directions."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._bytes = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bytes(self) -> int:
        with self._lock:
            return self._bytes

    def close(self) -> None:
        # Who waits in accept() is woken by this, and not by close() alone.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(one,), daemon=True).start()

    def _join(self, one: socket.socket) -> None:
        with one:
            try:
                other = socket.create_connection(("127.0.0.1", self._target), _TIMEOUT_S)
            except OSError:
                return
            with other:
                one.settimeout(_TIMEOUT_S)
                back = threading.Thread(target=self._copy, args=(other, one), daemon=True)
                back.start()
                self._copy(one, other)
                back.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                target.sendall(data)
                with self._lock:
                    self._bytes += len(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def relayed(target: int) -> Iterator[Relay]:
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
