"""`trainyard content serve` and `content network`: servers that end with their command."""

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from trainyard.cli.output import Output
from trainyard.cli.place import Place, at_place

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 is any free one.")]


@at_place
def serve(
    place: Place,
    port: Port = 8480,
    fetch: Annotated[
        bool, typer.Option(help="Also fetch what the store lacks from the gateways given.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Listen here; with 0.0.0.0 other machines can fetch all of it.")
    ] = "127.0.0.1",
    board: Annotated[
        bool, typer.Option("--board", help="Take small blocks, such as workers' profiles.")
    ] = False,
) -> None:
    """Serve the store as a trustless IPFS gateway, on this machine alone, until Ctrl-C.

    Example: 'trainyard content serve --fetch --gateway http://…'.
    """
    from trainyard.content.board import Board
    from trainyard.content.gateway_server import GatewayServer

    put_up = Board() if board else None
    is_open = host != "127.0.0.1"

    with (
        until_stopped() as stopped,
        place.content() as content,
        GatewayServer(content, host, port, fetch=fetch, expose=is_open, board=put_up) as server,
    ):
        place.output.result(
            {"gateway": server.address, "store": content.store.name},
            [f"gateway {server.address}", f"serving {content.store.name}; Ctrl-C ends it"],
        )
        stopped.wait()


@at_place
def network(
    place: Place,
    port: Port = 0,
    data: Annotated[
        Path | None,
        typer.Option(help="Keep the node's repository here; else it goes away in the end."),
    ] = None,
    no_kubo: Annotated[
        bool, typer.Option("--no-kubo", help="Use the embedded store even where Kubo can be had.")
    ] = False,
) -> None:
    """Run a private content network on this machine until Ctrl-C: Kubo, or the embedded store.

    The node is offline by configuration: no bootstrap peers, no discovery, loopback only.

    Example: 'trainyard content network --no-kubo'.
    """
    from trainyard.content.gateway_server import GatewayServer

    with ExitStack() as running:
        stopped = running.enter_context(until_stopped())
        started = None if no_kubo else _start_kubo(place.output, data, running)
        if started is None:
            content = running.enter_context(place.content())
            server = running.enter_context(GatewayServer(content, port=port))
            started = {"gateway": server.address, "store": content.store.name}
        lines = [f"{name:<8} {value}" for name, value in started.items()]
        place.output.result(started, [*lines, "Ctrl-C ends it"])
        stopped.wait()


def _start_kubo(output: Output, data: Path | None, running: ExitStack) -> dict[str, str] | None:
    """Where the node answers; None, with the reason told, where there is no Kubo."""
    from trainyard.content.kubo_binary import KuboNotAvailableError, obtain_kubo
    from trainyard.content.kubo_node import KuboNode, KuboNodeError

    try:
        binary = obtain_kubo(output.tell)
        repo = data or Path(running.enter_context(_scratch()))
        node = running.enter_context(KuboNode(binary, repo))
    except (KuboNotAvailableError, KuboNodeError) as error:
        output.tell(f"no Kubo, so the embedded store is served: {error}")
        return None
    return {
        "kubo": node.api_url,
        "gateway": node.gateway_url,
        "peer": node.addresses[0] if node.addresses else node.peer_id,
        "repo": str(repo),
    }


def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="trainyard-network-")


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that everything ends in order."""
    stopped = threading.Event()
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, lambda *_: stopped.set()) for kind in kinds}
    try:
        yield stopped
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
