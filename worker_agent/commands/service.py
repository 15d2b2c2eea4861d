"""`trainyard worker service`: the agent under systemd."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from trainyard.cli.failing import EXIT_CODES_HELP, WrongUseError, telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import HomeOption, Json, home_at

service = typer.Typer(
    name="service",
    help="The agent as a service of systemd.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)


@service.callback()
def _only_a_group() -> None:
    """The agent as a service of systemd."""


@service.command(epilog=EXIT_CODES_HELP)
def install(
    home: HomeOption = None,
    password_file: Annotated[
        Path,
        typer.Option(help="Where systemd reads the key's password, as root.", dir_okay=False),
    ] = Path("/etc/trainyard/password"),
    user: Annotated[
        str | None, typer.Option(help="The account to run as, which owns the home; else yours.")
    ] = None,
    memory_bytes: Annotated[
        int | None, typer.Option(min=1, help="MemoryMax; else from the settings.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the unit to this file, instead of printing it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a unit for systemd that runs the agent with as little as it needs."""
    with telling_failures(as_json):
        import pwd

        from worker_agent.settings import read_settings
        from worker_agent.unit import Unit, unit_text

        place = home_at(home)
        settings = read_settings(place)
        # The daemon and a runner per task take less than a gigabyte beside the tasks themselves.
        tasks = settings.policy.concurrency * settings.sandbox.memory_bytes
        account = user or pwd.getpwuid(os.getuid()).pw_name
        if account == "root":
            raise WrongUseError(
                f"the agent must not be root: name an account of its own, which has to own "
                f"{place.folder}, with --user"
            )
        unit = Unit(
            command=(sys.executable, "-m", "trainyard", "worker", "run", "--home"),
            home=place.folder,
            password_file=password_file.absolute(),
            user=account,
            memory_bytes=memory_bytes or tasks + (1 << 30),
            also_writable=() if settings.content.store is None else (settings.content.store,),
        )
        text = unit_text(unit)
        if write is None:
            Output(as_json).result({"unit": text}, text.splitlines())
            return
        try:
            with write.open("x") as out:
                out.write(text)
        except FileExistsError:
            raise WrongUseError(f"{write} is there already: remove it first") from None
        name = shlex.quote(write.name)
        Output(as_json).result(
            {"unit": text, "file": str(write)},
            [f"wrote {write}", f"next: systemctl daemon-reload && systemctl enable --now {name}"],
        )
