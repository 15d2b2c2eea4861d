"""Whether others can reach what a worker has to show, as far as this machine can tell."""

import os
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from trainyard.content.board import Board, put_up
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.engine.checkup import Problem
from trainyard.protocol.errors import TrainyardError
from worker_agent.deciding.offers import SERVE
from worker_agent.settings import Settings, host_and_port

_ANSWER_S = 10.0
# The empty block, which every gateway has.
_PROBE = Cid.parse("bafkqaaa")
# Of chains on one machine, by custom.
_DEVNETS = (1337, 31337)


def examine_reach(settings: Settings, *, is_running: bool) -> Iterator[Problem]:
    """What keeps others from fetching what we show. Who only audits has nothing to show."""
    places = settings.content
    if not settings.policy.concurrency:
        return
    if not places.is_served:
        why = "nobody can fetch what this worker has to show, so it joins no task"
        if settings.peers.relay is not None:
            why += ": the relay carries only what workers say to each other"
        yield Problem(why, SERVE)
    if places.gateway is not None:
        yield from _gateway(settings, is_running=is_running)
        if not places.boards and places.gateway not in places.gateways:
            yield Problem(
                f"nobody can find out that what this worker has is at {places.gateway}",
                "name a board in [content], such as the one of whom you heard of the market from",
            )
    yield from _boards(settings)
    yield from _loopback(settings)


def _gateway(settings: Settings, *, is_running: bool) -> Iterator[Problem]:
    address, listen = settings.content.gateway or "", settings.content.listen
    if listen is None or is_running:
        yield from _asked(address, _PROBE)
        return
    # It runs with the agent alone, so for a moment we are it, with a block that nobody else has.
    block, board = os.urandom(32), Board()
    cid = Cid.of(Codec.RAW, block)
    board.put(cid, block, "")
    host, port = host_and_port(listen)
    with TemporaryDirectory(prefix="trainyard-doctor-") as name:
        nothing = Content(EmbeddedStore(Path(name)))
        try:
            with GatewayServer(nothing, host, port, expose=True, board=board):
                yield from _asked(address, cid)
        except TrainyardError as error:
            what, _, _ = str(error).partition("; ")
            yield Problem(what, "end what listens there, or change listen in [content]")
        finally:
            nothing.close()


def _asked(address: str, cid: Cid) -> Iterator[Problem]:
    source = GatewaySource(address, timeout_s=_ANSWER_S)
    try:
        source.fetch(cid)
    except BlockNotFoundError:
        fix = "correct advertise in [content]: another gateway answers there"
        yield Problem(f"what this worker has is not at {address}", fix)
    except TrainyardError as error:
        fix = "let others connect to it, or correct listen and advertise in [content]"
        yield Problem(f"the gateway {address} does not answer: {error}", fix)
    finally:
        source.close()


def _boards(settings: Settings) -> Iterator[Problem]:
    for board in settings.content.boards:
        try:
            put_up(board, b"trainyard worker doctor", timeout_s=_ANSWER_S)
        except TrainyardError as error:
            yield Problem(str(error), "name another in boards in [content]")


def _loopback(settings: Settings) -> Iterator[Problem]:
    if settings.chain.chain_id in _DEVNETS:
        return
    peers, gateway = settings.peers, settings.content.gateway
    card = peers.advertise or f"{peers.host}:{peers.port}"
    if peers.relay is None and _is_loopback(f"//{card}"):
        fix = "set host and advertise in [peers], or a relay"
        yield Problem(f"other workers cannot reach {card}, which is on our card", fix, False)
    if gateway is not None and _is_loopback(gateway):
        fix = "set advertise in [content] to where others reach it"
        yield Problem(f"other machines cannot reach {gateway}", fix, False)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
