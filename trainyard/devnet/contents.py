"""The devnet's content: a folder that our gateway serves, or a private Kubo node."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from trainyard.content.board import Board
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.kubo_binary import KUBO_VERSION, KuboNotAvailableError, find_kubo
from trainyard.content.kubo_node import KuboNode
from trainyard.content.kubo_node import Ports as KuboPorts
from trainyard.devnet.options import Options
from trainyard.devnet.place import Place
from trainyard.devnet.record import Ports


@dataclass(frozen=True, slots=True)
class ContentPlace:
    """Where content is kept, and where it is read from."""

    gateway: str
    # One of the two.
    store: Path | None = None
    kubo: str | None = None


@dataclass(frozen=True, slots=True)
class RunningContent:
    place: ContentPlace
    ports: Ports
    # That of a process besides our own.
    pid: int | None = None


@contextmanager
def running_content(place: Place, options: Options, ports: Ports) -> Iterator[RunningContent]:
    """Content inside the block, at the ports where it was the last time."""
    start = _embedded if options.content == "embedded" else _kubo
    with start(place, ports) as running:
        yield running


@contextmanager
def _embedded(place: Place, ports: Ports) -> Iterator[RunningContent]:
    content = Content(EmbeddedStore(place.content), [])
    try:
        # Agents that keep content elsewhere put up here where that is.
        with GatewayServer(content, port=ports.gateway, board=Board()) as server:
            port = int(server.address.rsplit(":", 1)[1])
            found = ContentPlace(server.address, store=place.content)
            yield RunningContent(found, replace(ports, gateway=port))
    finally:
        content.close()


@contextmanager
def _kubo(place: Place, ports: Ports) -> Iterator[RunningContent]:
    # Nothing is built or downloaded behind anybody's back.
    binary = find_kubo()
    if binary is None:
        raise KuboNotAvailableError(
            f"no Kubo is here: put `ipfs` {KUBO_VERSION} on PATH, "
            "or run 'python -m trainyard.content.kubo_binary', or use --content embedded"
        )
    wanted = KuboPorts(ports.kubo, ports.gateway, ports.kubo_swarm)
    with KuboNode(binary, place.kubo, ports=wanted) as node:
        used = node.ports
        yield RunningContent(
            ContentPlace(node.gateway_url, kubo=node.api_url),
            replace(ports, gateway=used.gateway, kubo=used.api, kubo_swarm=used.swarm),
            node.pid,
        )
