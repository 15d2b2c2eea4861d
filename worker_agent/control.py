"""The socket by which the operator's commands reach a running agent.

One line of JSON asks, one line answers, and that was it.
"""

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import structlog

from trainyard.protocol.errors import TrainyardError
from worker_agent.serving import Server

Answer = dict[str, Any]


@contextlib.contextmanager
def control_socket(path: Path, answer: Callable[[Answer], Answer]) -> Iterator[Server]:
    """Serve `answer` at a path, which must be the agent's alone, for as long as the block lasts."""
    # Whoever holds the agent's lock may replace what a killed agent left.
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with address_of(path) as address:
            listener.bind(address)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    server = Server(listener, b"\n", lambda line: _answered(line, answer))
    try:
        yield server
    finally:
        server.close()
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def address_of(path: Path) -> Iterator[str]:
    """A path as an address: those are at most 107 bytes long, and folders may be deeper."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _answered(line: bytes, answer: Callable[[Answer], Answer]) -> bytes:
    return json.dumps(_answer(line, answer)).encode() + b"\n"


def _answer(line: bytes, answer: Callable[[Answer], Answer]) -> Answer:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"error": f"that is no request: {error}"}
    if not isinstance(request, dict):
        return {"error": "that is no request: one is a JSON object"}
    try:
        return answer(request)
    except TrainyardError as error:
        return {"error": str(error)}
    except Exception as error:
        # Whatever somebody asks, the agent goes on.
        structlog.get_logger().exception("a request failed")
        return {"error": f"the agent could not answer: {error}; see its log"}
