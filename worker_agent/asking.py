"""Asks a running agent something, over its control socket."""

import json
import socket
import time
from typing import Any

from trainyard.protocol.errors import PermanentError, TransientError
from worker_agent.control import address_of
from worker_agent.locking import holder_in
from worker_agent.settings import Home

# Between two looks at the chain it answers at once; a look at a dead endpoint takes its time.
_TIMEOUT_S = 30.0
_POLL_S = 0.05
_PIECE_BYTES = 1 << 16
_MOST_BYTES = 16 << 20


class NoAgentError(TransientError):
    """No agent runs with this folder."""


class AgentRefusedError(PermanentError):
    """The agent answered that it cannot, and why."""


def ask(home: Home, what: str, *, timeout_s: float = _TIMEOUT_S, **values: Any) -> dict[str, Any]:
    """The agent's answer to one request."""
    deadline = time.monotonic() + timeout_s
    line = json.dumps({"do": what, **values}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            _connect(connection, home, deadline)
            connection.sendall(line)
            answer = _read(connection, deadline)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        raise NoAgentError(_why_nobody(home)) from None
    except (TimeoutError, ConnectionError):
        raise NoAgentError(
            f"the agent in {home.folder} does not answer: see {home.log} for what it does"
        ) from None
    if "error" in answer:
        raise AgentRefusedError(str(answer["error"]))
    return answer


def _why_nobody(home: Home) -> str:
    holder = holder_in(home)
    if holder is not None:
        return f"{holder} is starting or ending: ask again in a moment"
    return f"no agent runs in {home.folder}: start one with 'trainyard worker run'"


def _connect(connection: socket.socket, home: Home, deadline: float) -> None:
    while True:
        try:
            with address_of(home.control) as address:
                return connection.connect(address)
        except BlockingIOError:
            # Others ask too, and more than can wait in line.
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            time.sleep(_POLL_S)


def _read(connection: socket.socket, deadline: float) -> dict[str, Any]:
    read = bytearray()
    while not read.endswith(b"\n"):
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        piece = connection.recv(_PIECE_BYTES)
        if not piece or len(read) > _MOST_BYTES:
            raise ConnectionResetError("the answer was cut off")
        read += piece
    answer: dict[str, Any] = json.loads(read)
    return answer
