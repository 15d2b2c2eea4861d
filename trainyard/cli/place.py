"""The options that all commands about content share, and what they lead to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError
from trainyard.cli.output import Output
from trainyard.cli.sharing import with_options

if TYPE_CHECKING:
    from trainyard.content.content import Content


@dataclass(frozen=True, slots=True)
class Place:
    """Where content is kept and sought, as the user said, and where results go."""

    output: Output
    store: Path | None
    kubo: str | None
    gateways: tuple[str, ...]

    @contextmanager
    def content(self) -> Iterator["Content"]:
        """The content plane; what the command line does not say comes from the environment."""
        from pydantic import ValidationError

        from trainyard.content.settings import ContentSettings, open_content
        from trainyard.iptf.settings import bad_variable

        given: dict[str, Any] = {}
        if self.store is not None:
            given |= {"store": self.store, "kubo": None}
        if self.kubo is not None:
            given["kubo"] = self.kubo
        if self.gateways:
            given["gateways"] = ",".join(self.gateways)
        try:
            settings = ContentSettings(**given)
        except ValidationError as error:
            raise WrongUseError(bad_variable(error, "TRAINYARD_")) from error
        content = open_content(settings)
        try:
            yield content
        finally:
            content.close()


def _shared(
    store: Annotated[
        Path | None,
        typer.Option(help="Folder of the embedded store. Else TRAINYARD_STORE.", file_okay=False),
    ] = None,
    kubo: Annotated[
        str | None,
        typer.Option(
            help="Keep content in the Kubo node at this RPC address. Else TRAINYARD_KUBO.",
            metavar="ADDRESS",
        ),
    ] = None,
    gateway: Annotated[
        list[str] | None,
        typer.Option(
            help="Fetch from this trustless gateway too; repeatable. Else TRAINYARD_GATEWAYS.",
            metavar="ADDRESS",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
    ] = False,
) -> Place:
    if store is not None and kubo is not None:
        raise WrongUseError("content is kept in --store or in --kubo, not in both")
    return Place(Output(as_json), store, kubo, tuple(gateway or ()))


# Gives a command these options, and hands it the Place that they describe.
at_place = with_options(_shared)
