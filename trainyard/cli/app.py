"""The command line: parses, calls the layer below, prints."""

import sys
from typing import Annotated

import typer

from trainyard import __version__
from trainyard.cli.account import account
from trainyard.cli.checks import stat
from trainyard.cli.checks import verify as verify_content
from trainyard.cli.config import config
from trainyard.cli.content import add, cat, gc, get, ls, pin, unpin
from trainyard.cli.dapp import dapp
from trainyard.cli.demo import demo
from trainyard.cli.devnet import devnet
from trainyard.cli.doctor import doctor
from trainyard.cli.engine import audit, run
from trainyard.cli.explain import explain
from trainyard.cli.failing import EXIT_CODES_HELP, telling_failures
from trainyard.cli.posting import post, quote
from trainyard.cli.predicting import predict
from trainyard.cli.serving import network, serve
from trainyard.cli.shards import shard
from trainyard.cli.tasks import cancel, fetch, logs, task, tasks, verify, watch
from trainyard.cli.worker import worker

app = typer.Typer(
    name="trainyard",
    help="A decentralised marketplace for TensorFlow training.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)
content = typer.Typer(
    name="content",
    help="Files, directories and data sets by CID, verified whoever sends them.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)
app.add_typer(content)
for command in (add, shard, get, cat, ls, stat, pin, unpin, gc, serve, network):
    content.command(epilog=EXIT_CODES_HELP)(command)
content.command(name="verify", epilog=EXIT_CODES_HELP)(verify_content)
engine = typer.Typer(
    name="engine",
    help="Training that anyone can check, on this machine and without a chain.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)
app.add_typer(engine)
engine.command(epilog=EXIT_CODES_HELP)(run)
app.command(epilog=EXIT_CODES_HELP)(audit)
app.command(epilog=EXIT_CODES_HELP)(doctor)
app.add_typer(devnet)
app.command(epilog=EXIT_CODES_HELP)(demo)
app.command(epilog=EXIT_CODES_HELP)(explain)
for command in (quote, post, predict, tasks, task, watch, logs, cancel, fetch, verify):
    app.command(epilog=EXIT_CODES_HELP)(command)
app.add_typer(account)
app.add_typer(config)
app.add_typer(worker)
app.add_typer(dapp)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trainyard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options that stand before any command."""


def main() -> None:
    try:
        with telling_failures():
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
