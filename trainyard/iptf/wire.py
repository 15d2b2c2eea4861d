"""The messages between the plugin and its gate; plugin/wire.h describes them."""

import array
import os
import socket
import struct
from enum import IntEnum

PROTOCOL = 2
# A request names a path or two, or the ranges that were read of one file.
LONGEST_REQUEST = 1 << 20

_LENGTH = struct.Struct("<I")
_NUMBERS = {"B": struct.Struct("<B"), "I": struct.Struct("<I"), "Q": struct.Struct("<Q")}


class Op(IntEnum):
    HELLO = 1
    OPEN = 2
    ENSURE = 3
    CLOSE = 4
    STAT = 5
    LIST = 6
    MATCH = 7
    CREATE = 8
    MAKE_DIR = 9
    REMOVE_FILE = 10
    REMOVE_DIR = 11
    REMOVE_TREE = 12
    RENAME = 13
    # Asked by Python alone.
    PUBLISH = 32
    BEGIN_RUN = 33
    END_RUN = 34


class WireError(Exception):
    """The other end does not speak this protocol, or hung up within a message."""


class Fields:
    """The fields of a message, taken from its front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _number(self, kind: str) -> int:
        form = _NUMBERS[kind]
        if self._at + form.size > len(self._data):
            raise WireError("a message is cut short")
        (value,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return int(value)

    def u8(self) -> int:
        return self._number("B")

    def u32(self) -> int:
        return self._number("I")

    def u64(self) -> int:
        return self._number("Q")

    def text(self) -> str:
        size = self.u32()
        if self._at + size > len(self._data):
            raise WireError("a message is cut short")
        self._at += size
        # Names on disk are bytes, and need not be UTF-8.
        return self._data[self._at - size : self._at].decode("utf-8", "surrogateescape")


class Message:
    """A message in the making: a request starts with its operation, an answer with its code."""

    def __init__(self, head: int) -> None:
        self._parts = [_NUMBERS["B"].pack(head)]

    def u8(self, value: int) -> "Message":
        return self._number("B", value)

    def u32(self, value: int) -> "Message":
        return self._number("I", value)

    def u64(self, value: int) -> "Message":
        return self._number("Q", value)

    def text(self, value: str) -> "Message":
        data = value.encode("utf-8", "surrogateescape")
        self.u32(len(data))
        self._parts.append(data)
        return self

    def frame(self) -> bytes:
        body = b"".join(self._parts)
        return _LENGTH.pack(len(body)) + body

    def _number(self, kind: str, value: int) -> "Message":
        self._parts.append(_NUMBERS[kind].pack(value))
        return self


def send(connection: socket.socket, message: Message, fd: int | None = None) -> None:
    """Send a message; the descriptor, if there is one, travels with its first byte."""
    frame = message.frame()
    sent = 0
    if fd is not None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        sent = connection.sendmsg([frame], rights)
    # Not even nothing can be sent to one who took all of it and hung up.
    if sent < len(frame):
        connection.sendall(memoryview(frame)[sent:])


def receive(connection: socket.socket, longest: int = LONGEST_REQUEST) -> Fields | None:
    """The next message, or None when the other end has hung up."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if not 0 < length <= longest:
        raise WireError(f"a message of {length} bytes; the longest has {longest}")
    body = _exactly(connection, length)
    if body is None:
        raise WireError("the other end hung up within a message")
    return Fields(body)


def receive_with_fd(connection: socket.socket, longest: int) -> tuple[Fields | None, int | None]:
    """As `receive`, and the descriptor that came along."""
    head, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
    fd = fds[0] if fds else None
    try:
        if not head:
            return None, fd
        rest = _exactly(connection, _LENGTH.size - len(head)) if len(head) < _LENGTH.size else b""
        (length,) = _LENGTH.unpack(head + (rest or b""))
        if not 0 < length <= longest:
            raise WireError(f"a message of {length} bytes; the longest has {longest}")
        body = _exactly(connection, length)
        if body is None:
            raise WireError("the other end hung up within a message")
    except BaseException:
        if fd is not None:
            os.close(fd)
        raise
    return Fields(body), fd


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    """`size` bytes; None if the stream ends before the first of them."""
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        some = connection.recv_into(view[got:])
        if some == 0:
            if got:
                raise WireError("the other end hung up within a message")
            return None
        got += some
    return bytes(data)
