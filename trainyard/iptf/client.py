"""Requests to a gate from Python."""

import json
import os
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path

from trainyard.iptf.codes import Code
from trainyard.iptf.wire import PROTOCOL, Fields, Message, Op, WireError, receive_with_fd, send
from trainyard.protocol.errors import TransientError

_LONGEST_ANSWER = 512 << 20


class GateError(TransientError):
    """The gate cannot be reached, or said no."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code


class GateClient:
    """One connection, for one thread."""

    def __init__(self, path: Path, run: int = 0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
            hello = Message(Op.HELLO).u32(PROTOCOL).u64(secrets.randbits(64))
            self.ask(hello.u32(os.getpid()).u64(run))
        except OSError as error:
            self._socket.close()
            raise GateError(
                Code.UNAVAILABLE,
                f"the iptf gate does not answer at {path}: {error.strerror or error}",
            ) from error
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> "GateClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Message) -> Fields:
        """The fields of the answer; GateError if it is not OK."""
        fields, fd = self.ask_for_fd(request)
        if fd is not None:
            os.close(fd)
        return fields

    def ask_for_fd(self, request: Message) -> tuple[Fields, int | None]:
        """As `ask`, and the descriptor that came with the answer, which is then the caller's."""
        send(self._socket, request)
        answer, fd = receive_with_fd(self._socket, _LONGEST_ANSWER)
        if answer is None:
            raise WireError("the gate hung up")
        code = answer.u8()
        if code != Code.OK:
            raise GateError(Code(code), answer.text())
        return answer, fd

    def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        send(self._socket, message)

    def publish(self, uri: str) -> str:
        """Store what stands at a URI below iptf://mfs; its CID."""
        return self.ask(Message(Op.PUBLISH).text(uri)).text()

    def begin_run(self, command: Sequence[str], cwd: str) -> int:
        return self.ask(Message(Op.BEGIN_RUN).text(json.dumps(list(command))).text(cwd)).u64()

    def end_run(self, run: int, exit_code: int) -> None:
        self.ask(Message(Op.END_RUN).u64(run).u32(exit_code))
