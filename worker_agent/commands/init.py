"""`trainyard worker init`: an agent's folder, with its settings and its key."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import HomeOption, Json, PasswordFile, home_at

if TYPE_CHECKING:
    from worker_agent.settings import Home, Settings


def init(
    home: HomeOption = None,
    endpoint: Annotated[
        list[str] | None, typer.Option(help="A JSON-RPC endpoint of the chain; repeatable.")
    ] = None,
    market: Annotated[str | None, typer.Option(help="The market's address.")] = None,
    chain_id: Annotated[int | None, typer.Option(min=1, help="The chain's id.")] = None,
    start_block: Annotated[
        int | None, typer.Option(min=0, help="The block in which the market was deployed.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Keep content in this folder, not in the agent's own.")
    ] = None,
    kubo: Annotated[
        str | None, typer.Option(help="Keep content in the Kubo node at this RPC address.")
    ] = None,
    gateway: Annotated[
        list[str] | None, typer.Option(help="Fetch from this trustless gateway; repeatable.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Serve what the agent has at this host:port.", metavar="HOST:PORT"),
    ] = None,
    advertise: Annotated[
        str | None, typer.Option(help="Where others reach that, if it is not where it listens.")
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(help="Put up on this board where the agent is found; repeatable."),
    ] = None,
    payout: Annotated[
        str | None, typer.Option(help="Earnings go to this address; else they stay.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Any other setting, such as policy.bond=100; repeatable.", metavar="A.B=V"
        ),
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(
            help="Take the private key in this file, - for stdin; else a new one is made."
        ),
    ] = None,
    password_file: PasswordFile = None,
    as_json: Json = False,
) -> None:
    """Make an agent's folder: settings with an explanation of each, and an encrypted key.

    Asks for what the options leave open. A folder with anything in it is never touched.
    """
    with telling_failures(as_json):
        place = home_at(home)
        if place.folder.exists() and (not place.folder.is_dir() or any(place.folder.iterdir())):
            raise WrongUseError(
                f"{place.folder} is not empty, and is left as it is: name another with --home"
            )
        chain = {
            "endpoints": endpoint or [_asked("--endpoint", "JSON-RPC endpoint of the chain")],
            "chain_id": chain_id or _asked("--chain-id", "Id of the chain", int),
            "market": market or _asked("--market", "Address of the market"),
            "start_block": _asked("--start-block", "Block in which it was deployed", int)
            if start_block is None
            else start_block,
        }
        kept = {
            "store": store and store.absolute(),
            "kubo": kubo,
            "gateways": gateway or [],
            "listen": listen,
            "advertise": advertise,
            "boards": board or [],
        }
        given: dict[str, Any] = {"chain": chain, "content": kept, "payout": payout}
        for each in setting or []:
            _set(given, each)
        settings = _validated(given)
        key, password = _key(key_file), _new_password(password_file)
        address = _make(place, settings, key, password)
        Output(as_json).result(
            {
                "home": str(place.folder),
                "address": address,
                "config": str(place.config),
                "keystore": str(place.keystore),
            },
            [
                f"address   {address}",
                f"settings  {place.config}",
                f"key       {place.keystore}",
                "next: send it what it is to stake and to spend on fees, adapt the settings, "
                "and run 'trainyard worker doctor'",
            ],
        )


def _asked(option: str, question: str, kind: Callable[[str], Any] = str) -> Any:
    if not sys.stdin.isatty():
        raise WrongUseError(f"{option} is missing, and nobody can be asked for it here")
    return typer.prompt(question, type=kind, err=True)


def _set(given: dict[str, Any], setting: str) -> None:
    """Put one setting, written as in TOML, to the others."""
    import tomllib

    path, _, value = setting.partition("=")
    *tables, name = path.strip().split(".")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise WrongUseError(
            f"--set {setting}: {value!r} is no TOML; text stands in quotes"
        ) from error
    for table in tables:
        given = given.setdefault(table, {})
    given[name] = parsed


def _validated(given: dict[str, Any]) -> "Settings":
    from pydantic import ValidationError

    from worker_agent.settings import Settings

    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WrongUseError(f"{where}: {first['msg']}") from error


def _key(file: str | None) -> bytes:
    import secrets

    from trainyard.chain.keystore import read_key

    if file is None:
        # The chance of a number that is no key is that of guessing somebody's.
        return secrets.token_bytes(32)
    return read_key(sys.stdin.read() if file == "-" else Path(file).read_text())


def _new_password(file: Path | None) -> str:
    from trainyard.chain.keystore import KeystoreError, find_password

    password = find_password(file, prompt="New password for the agent's key: ")
    if (
        file is None
        and sys.stdin.isatty()
        and find_password(None, prompt="The same again: ") != password
    ):
        raise KeystoreError("the two are not the same: begin again")
    return password


def _make(home: "Home", settings: "Settings", key: bytes, password: str) -> str:
    """All of the folder, or none of it."""
    from trainyard.chain.keystore import create_keystore
    from worker_agent.config_file import config_text
    from worker_agent.settings import Home, read_settings

    home.folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Home(home.folder.with_name(f".{home.folder.name}.{os.getpid()}"))
    fresh.folder.mkdir(mode=0o700)
    try:
        fresh.config.write_text(config_text(settings))
        assert read_settings(fresh) == settings
        address = create_keystore(fresh.keystore, key, password)
        # It takes the place of a folder that is empty or not there, and of no other.
        os.rename(fresh.folder, home.folder)
    except BaseException:
        shutil.rmtree(fresh.folder)
        raise
    return address
