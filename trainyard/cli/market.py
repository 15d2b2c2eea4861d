"""The options that all commands about a market share, and what they lead to."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.output import Output
from trainyard.cli.sharing import with_options

if TYPE_CHECKING:
    from trainyard.sdk.market import Market


@dataclass(frozen=True, slots=True)
class Site:
    """Which market the user means, and where results go."""

    output: Output
    where: str | None
    folder: Path | None
    given: dict[str, Any]

    def open(self) -> "Market":
        """To be closed, or used as a context manager."""
        import warnings

        with warnings.catch_warnings():
            # web3 loads a part of its own that is deprecated: nothing that we could change.
            warnings.simplefilter("ignore", DeprecationWarning)
            from trainyard.face import connect

        return connect(self.where, folder=self.folder, **self.given)


def _shared(
    on: Annotated[
        str | None,
        typer.Option(
            help="A profile of 'trainyard config', 'devnet', or the address of an RPC endpoint; "
            "else the default profile, else the devnet of this machine."
        ),
    ] = None,
    market: Annotated[
        str | None, typer.Option(help="The market's address, with an endpoint's.")
    ] = None,
    start_block: Annotated[
        int, typer.Option(min=0, help="The block of its deployment, with an endpoint's address.")
    ] = 0,
    gateway: Annotated[
        list[str] | None,
        typer.Option(help="A gateway for content, with an endpoint's address; repeatable."),
    ] = None,
    page: Annotated[
        str | None, typer.Option(help="The dapp's address, with an endpoint's address.")
    ] = None,
    keystore: Annotated[
        Path | None, typer.Option(help="The encrypted key that pays.", dir_okay=False)
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="Its password; else it is asked for.", dir_okay=False)
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="The devnet in this folder.", file_okay=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
    ] = False,
) -> Site:
    given: dict[str, Any] = {
        "market": market,
        "start_block": start_block,
        "gateways": tuple(gateway or ()),
        "page": page,
        "keystore": keystore,
        "password_file": password_file,
    }
    kept = {name: value for name, value in given.items() if value not in (None, (), 0)}
    return Site(Output(as_json), on, folder, kept)


# Gives a command these options, and hands it the Site that they describe.
at_market = with_options(_shared)
