"""Serves an agent's store, and puts its profile up on boards again and again."""

import logging
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from trainyard.content.board import put_up
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.gateway_server import GatewayServer
from trainyard.protocol.errors import TrainyardError, TransientError
from worker_agent.opening import open_agent_content
from worker_agent.settings import Home, host_and_port, read_settings

# A board that was started anew has forgotten us for so long.
_EVERY_S = 60.0


def exhibit(folder: str) -> None:
    """Until told to end; what cannot be served ends it with the reason."""
    # Strangers decide how often something is to be said, so little is.
    logging.disable(logging.CRITICAL)
    ended, woken = threading.Event(), threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()
        woken.set()

    def look_again(number: int, frame: FrameType | None) -> None:
        woken.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, look_again)
    home = Home(Path(folder))
    try:
        settings = read_settings(home)
        with ExitStack() as parts:
            content = open_agent_content(home, settings)
            parts.callback(content.close)
            server = None
            if settings.content.listen is not None:
                host, port = host_and_port(settings.content.listen)
                server = parts.enter_context(GatewayServer(content, host, port, expose=True))
            boards = _Boards(settings.content.boards, content, home)
            while not ended.is_set():
                if server is not None and not server.is_running:
                    raise TransientError(f"the gateway at {server.address} has ended by itself")
                woken.clear()
                boards.put_up()
                woken.wait(_EVERY_S)
    except TrainyardError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(1)


class _Boards:
    """Where the profile is put up. What is wrong with one is told when that changes."""

    def __init__(self, boards: Sequence[str], content: Content, home: Home) -> None:
        self._boards, self._content, self._home = boards, content, home
        self._said: dict[str, str] = {}

    def put_up(self) -> None:
        profile = bytes.fromhex(self._home.profile.read_text())
        block = self._content.store.fetch(Cid(Codec.RAW, profile))
        for board in self._boards:
            try:
                put_up(board, block)
                reason = ""
            except TrainyardError as error:
                reason = str(error)
            if reason and reason != self._said.get(board):
                print(reason, file=sys.stderr, flush=True)
            self._said[board] = reason
