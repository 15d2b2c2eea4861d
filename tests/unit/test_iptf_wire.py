"""Messages between plugin and gate."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.iptf import wire
from trainyard.iptf.build import SOURCES
from trainyard.iptf.codes import Code
from trainyard.iptf.wire import Message, Op, WireError, receive, receive_with_fd, send


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_fields_come_back_as_they_were_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    send(ours, Message(Op.OPEN).u8(200).u32(1 << 31).u64(1 << 63).text("naïve \udcff"))

    fields = receive(theirs)

    assert fields is not None
    values = (fields.u8(), fields.u8(), fields.u32(), fields.u64(), fields.text())
    assert values == (Op.OPEN, 200, 1 << 31, 1 << 63, "naïve \udcff")
    with pytest.raises(WireError, match="cut short"):
        fields.u8()


def test_a_descriptor_travels_with_an_answer(
    ends: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    ours, theirs = ends
    (tmp_path / "file").write_bytes(b"passed on")
    with (tmp_path / "file").open("rb") as file:
        send(ours, Message(Code.OK).text("here"), file.fileno())

    fields, fd = receive_with_fd(theirs, 1000)

    assert fields is not None
    assert fd is not None
    with open(fd, "rb") as passed:
        assert passed.read() == b"passed on"


def test_a_message_that_is_too_long_or_cut_off_is_refused(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    ours.sendall((1 << 30).to_bytes(4, "little"))
    with pytest.raises(WireError, match="longest"):
        receive(theirs)
    ours.sendall((10).to_bytes(4, "little") + b"short")
    ours.close()
    with pytest.raises(WireError, match="hung up"):
        receive(theirs)


def test_a_closed_connection_is_no_message(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()

    assert receive(ends[1]) is None


def test_both_ends_number_the_operations_alike() -> None:
    header = (SOURCES / "wire.h").read_text()
    there = {
        re.sub(r"(?<!^)([A-Z])", r"_\1", name).upper(): int(number)
        for name, number in re.findall(r"^  k(\w+) = (\d+),", header, re.MULTILINE)
    }

    assert there == {op.name: op.value for op in Op if op < Op.PUBLISH}
    assert f"kProtocol = {wire.PROTOCOL};" in header
    assert f"kUnknownHandle = {Code.UNKNOWN_HANDLE.value};" in header


def test_a_descriptor_is_closed_when_the_message_is_bad(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    before = set(os.listdir("/proc/self/fd"))
    with open(os.devnull, "rb") as file:
        socket.send_fds(ours, [(1 << 30).to_bytes(4, "little")], [file.fileno()])
    with pytest.raises(WireError):
        receive_with_fd(theirs, 1000)

    assert set(os.listdir("/proc/self/fd")) == before
