"""`trainyard demo`: the whole market on this machine, on one task."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from trainyard.cli.failing import telling_failures


class Cheat(StrEnum):
    LAZY = "lazy"
    SKIP = "skip"
    LR = "lr"
    COPY = "copy"
    GARBAGE = "garbage"
    WITHHOLD = "withhold"


def demo(
    cheat: Annotated[
        Cheat | None, typer.Option(help="Let one worker cheat in this way, and see who pays.")
    ] = None,
    chain: Annotated[str, typer.Option(help="The chain's program: ganache or anvil.")] = "ganache",
    receipt: Annotated[
        Path, typer.Option(help="Write the signed receipt to this file.", dir_okay=False)
    ] = Path("demo-receipt.json"),
    stay: Annotated[
        bool | None,
        typer.Option(
            "--stay/--no-stay", help="Keep the page until Ctrl-C; so it does on a terminal."
        ),
    ] = None,
) -> None:
    """Bring a market up, have LeNet-5 trained on MNIST by two strangers, and see them audited.

    Everything runs on this machine and is gone afterwards but for the receipt. It takes some
    minutes, and ends by printing what the receipt states and where the page shows the task.

    Example: 'trainyard demo'.
    """
    with telling_failures():
        from rich.console import Console

        from trainyard.demo.play import play

        console = Console()
        play(
            console,
            chain=chain,
            cheat=cheat and cheat.value,
            receipt=receipt,
            stay=console.is_terminal if stay is None else stay,
        )
