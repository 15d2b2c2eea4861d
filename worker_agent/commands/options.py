"""The options that the operator's commands share."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from worker_agent.settings import Home

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="The agent's folder. Else trainyard/worker in XDG_DATA_HOME.",
        file_okay=False,
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        help="The key's password is in this file. Else a systemd credential, or you are asked.",
        dir_okay=False,
    ),
]
Target = Annotated[
    str | None, typer.Option(help="Where it goes; else the payout address of the settings.")
]
Timeout = Annotated[
    float, typer.Option(min=0, help="How many seconds to wait until all of it is in a block.")
]
NewJournal = Annotated[
    bool, typer.Option("--new-journal", help="Nothing of a lost journal is under way.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
]


def home_at(given: Path | None) -> "Home":
    from worker_agent.settings import Home

    return Home((given or default_home()).expanduser().absolute())


def default_home() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(data) if data.startswith("/") else Path.home() / ".local" / "share"
    return base / "trainyard" / "worker"
