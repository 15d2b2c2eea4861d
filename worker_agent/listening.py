"""Listens for new blocks at a WebSocket address, and writes a letter for each."""

import json
import os
import time
from contextlib import suppress

from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException
from websockets.sync.client import connect

_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
# However many blocks there are, the agent need not look more often.
_LEAST_S = 0.1
# Of a node that says nothing for so long, another connection is tried.
_SILENCE_S = 120.0
_MOST_BYTES = 1 << 20
_SUBSCRIBE = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}


def listen(address: str, out: int) -> None:
    """For ever: what breaks is begun again, later and later."""
    failures = 0
    while True:
        began = time.monotonic()
        with suppress(InvalidURI, InvalidHandshake, WebSocketException, OSError, ValueError):
            _follow(address, out)
        is_well = time.monotonic() - began > _LONGEST_WAIT_S
        failures = 0 if is_well else min(failures + 1, 10)
        time.sleep(min(_FIRST_WAIT_S * 2**failures, _LONGEST_WAIT_S))


def _follow(address: str, out: int) -> None:
    with connect(
        address, max_size=_MOST_BYTES, open_timeout=10, close_timeout=1, proxy=None
    ) as found:
        found.send(json.dumps(_SUBSCRIBE))
        while True:
            message = json.loads(found.recv(timeout=_SILENCE_S))
            if "error" in message:
                raise ValueError(f"the node refused: {message['error']}")
            if message.get("method") == "eth_subscription":
                # A pipe that nobody reads any more ends this process.
                os.write(out, b".")
                time.sleep(_LEAST_S)
