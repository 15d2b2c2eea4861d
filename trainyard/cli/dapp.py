"""`trainyard dapp`: the web server of the market, until it is told to end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import EXIT_CODES_HELP, telling_failures
from trainyard.cli.output import Output

if TYPE_CHECKING:
    from dapp.settings import Settings
    from trainyard.engine.confining import Confinement

dapp = typer.Typer(
    name="dapp",
    help="The web dapp: an index of the market, its API and the page.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)


@dapp.callback()
def _only_a_group() -> None:
    """The web dapp: an index of the market, its API and the page."""


@dapp.command(epilog=EXIT_CODES_HELP)
def serve(
    endpoint: Annotated[
        list[str] | None, typer.Option(help="A JSON-RPC endpoint of the chain; repeatable.")
    ] = None,
    market: Annotated[str | None, typer.Option(help="The market's address.")] = None,
    chain_id: Annotated[int | None, typer.Option(min=1, help="The chain's id.")] = None,
    start_block: Annotated[
        int | None, typer.Option(min=0, help="The block in which the market was deployed.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where to listen; 0 is any free port.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where the database and uploads are kept.", file_okay=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document when it listens.")
    ] = False,
) -> None:
    """Serve the page and the API until Ctrl-C or SIGTERM.

    What is not given here is read from TRAINYARD_DAPP_… variables; docs/dapp.md lists them.

    Example: 'trainyard dapp serve --endpoint http://127.0.0.1:8545 --market 0x… --port 8080'.
    """
    with telling_failures(as_json):
        import warnings

        with warnings.catch_warnings():
            # web3 loads a part of its own that is deprecated: nothing that we could change.
            warnings.simplefilter("ignore", DeprecationWarning)
            from dapp.app import create_app
        from dapp.errors import SettingsError
        from dapp.serving import listen, require_own_currency, serve, set_up_logs
        from dapp.settings import read_settings
        from trainyard.chain.endpoints import Endpoints
        from trainyard.protocol.errors import TrainyardError

        given: dict[str, Any] = {
            "endpoints": tuple(endpoint) if endpoint else None,
            "market": market,
            "chain_id": chain_id,
            "start_block": start_block,
            "port": port,
            "data": data,
        }
        settings = read_settings(**{name: one for name, one in given.items() if one is not None})
        set_up_logs(as_json=settings.log_json)
        output = Output(as_json)
        confinement = _confinement(output)
        try:
            require_own_currency(
                Endpoints(settings.endpoints, chain_id=settings.chain_id), settings
            )
        except SettingsError:
            raise
        except TrainyardError:
            # The chain is away, or another one: the index says so, and asks again.
            pass
        listener = listen(settings)
        app = create_app(settings, confinement=confinement)
        address = f"http://{settings.host}:{listener.getsockname()[1]}"
        relay = None
        if settings.relay_port is not None:
            relay = f"{settings.host}:{settings.relay_port}"
        told: dict[str, Any] = {
            "address": address,
            "market": settings.market,
            "chain_id": settings.chain_id,
            "relay": relay,
        }
        lines = [f"the dapp is at {address}"]
        lines += [f"a relay for workers that nobody can reach is at {relay}"] if relay else []
        output.result(told, [*lines, "Ctrl-C ends it"])
        serve(app, listener, beside=_relay(settings))


def _confinement(output: Output) -> "Confinement | None":
    """The sandbox for strangers' files; without one those routes say so."""
    from worker_agent.finding import SandboxError
    from worker_agent.limits import Limits
    from worker_agent.sandbox import Sandbox

    try:
        return Sandbox(Limits(wall_s=600.0))
    except SandboxError as error:
        output.tell(f"no sandbox, so models and data cannot be read here: {error}")
        return None


def _relay(settings: "Settings") -> Any:
    """The relay for agents behind NAT, beside the server on a port of its own."""
    if settings.relay_port is None:
        return None
    from worker_agent.peers.relay import Relay

    return Relay(settings.host, settings.relay_port)
