"""A little server for the agent's loop: short questions, each with one answer, and no thread.

Whoever connects cannot hold the agent up: nothing here waits, questions are short, connections few,
and each has its time.
"""

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

LONGEST_BYTES = 8192
_PIECE_BYTES = 1 << 16
_MOST_CONNECTIONS = 8
_PATIENCE_S = 5.0


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    until: float
    asked: bytearray = field(default_factory=bytearray)
    # What is still to be written, once there is an answer.
    answer: memoryview | None = None


class Server:
    """Answers what comes up to `end`, at a socket that listens."""

    def __init__(
        self,
        listener: socket.socket,
        end: bytes,
        answer: Callable[[bytes], bytes],
        *,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._listener, self._end, self._answer = listener, end, answer
        self._patience_s = patience_s
        self._selector = selectors.EpollSelector()
        self._connections: list[_Connection] = []
        listener.setblocking(False)
        listener.listen(_MOST_CONNECTIONS)
        self._selector.register(listener, selectors.EVENT_READ)

    @property
    def count(self) -> int:
        """Connections now."""
        return len(self._connections)

    def fileno(self) -> int:
        """To be waited for: it can be read when somebody asks, or takes an answer."""
        return self._selector.fileno()

    def serve(self) -> None:
        """Go on with all connections, as far as that is possible without waiting."""
        for key, _ in self._selector.select(0):
            if key.data is None:
                self._accept()
            else:
                self._go_on(key.data)
        now = time.monotonic()
        for connection in [one for one in self._connections if now >= one.until]:
            self._drop(connection)

    def close(self) -> None:
        for connection in list(self._connections):
            self._drop(connection)
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            found, _ = self._listener.accept()
            found.setblocking(False)
            if len(self._connections) >= _MOST_CONNECTIONS:
                # The oldest had the longest time to say something.
                self._drop(self._connections[0])
            connection = _Connection(found, time.monotonic() + self._patience_s)
            self._connections.append(connection)
            self._selector.register(found, selectors.EVENT_READ, connection)

    def _go_on(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        try:
            is_over = self._read(connection) or self._write(connection)
        except BlockingIOError:
            return
        except OSError:
            is_over = True
        except Exception:
            # A question that cannot be answered is not to end who was asked.
            structlog.get_logger().exception("a question could not be answered")
            is_over = True
        if is_over:
            self._drop(connection)

    def _read(self, connection: _Connection) -> bool:
        """Take in a question; True for one that nobody will answer."""
        if connection.answer is not None:
            return False
        piece = connection.socket.recv(LONGEST_BYTES)
        connection.asked += piece
        question, end, _ = bytes(connection.asked).partition(self._end)
        if end and len(question) <= LONGEST_BYTES:
            connection.answer = memoryview(self._answer(question))
            self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)
            return False
        return not piece or len(connection.asked) > LONGEST_BYTES

    def _write(self, connection: _Connection) -> bool:
        """Send as much as goes; True when that was all."""
        if connection.answer is None:
            return False
        sent = connection.socket.send(connection.answer[:_PIECE_BYTES])
        connection.answer = connection.answer[sent:]
        return not connection.answer

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
