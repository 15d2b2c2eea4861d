"""`trainyard config`: markets by name, so that nobody has to spell addresses twice."""

from pathlib import Path
from typing import Annotated, Any

import typer

from trainyard.cli.failing import EXIT_CODES_HELP, WrongUseError, telling_failures
from trainyard.cli.output import Output

config = typer.Typer(
    name="config",
    help="Markets by name, for 'trainyard.connect' and all commands' --on.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(help="The profile's name.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
]


@config.command(epilog=EXIT_CODES_HELP)
def show(as_json: Json = False) -> None:
    """Show all profiles, and where they are kept.

    Example: 'trainyard config show'.
    """
    with telling_failures(as_json):
        from trainyard.sdk.profiles import config_file, read_config

        found, path = read_config(), config_file()
        document = {"file": str(path), **found.model_dump(mode="json", exclude_none=True)}
        lines = [f"{path}", f"default: {found.default or 'the devnet of this machine'}"]
        for name, one in found.profiles.items():
            said = one.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
            lines += [f"{name}:", *(f"  {key} = {value}" for key, value in said.items())]
        Output(as_json).result(document, lines)


@config.command(name="set", epilog=EXIT_CODES_HELP)
def set_(
    name: Name,
    endpoint: Annotated[
        list[str] | None, typer.Option(help="A JSON-RPC endpoint; repeatable.")
    ] = None,
    market: Annotated[str | None, typer.Option(help="The market's address.")] = None,
    chain_id: Annotated[int | None, typer.Option(min=1, help="The chain's id.")] = None,
    start_block: Annotated[
        int | None, typer.Option(min=0, help="The block of the market's deployment.")
    ] = None,
    gateway: Annotated[
        list[str] | None, typer.Option(help="A gateway to fetch content from; repeatable.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Where content is kept.")] = None,
    kubo: Annotated[str | None, typer.Option(help="A Kubo node that keeps it instead.")] = None,
    keystore: Annotated[Path | None, typer.Option(help="The encrypted key that pays.")] = None,
    password_file: Annotated[Path | None, typer.Option(help="Its password.")] = None,
    page: Annotated[str | None, typer.Option(help="The dapp's address.")] = None,
    default: Annotated[bool, typer.Option(help="Make it the one that is meant.")] = False,
    as_json: Json = False,
) -> None:
    """Make a profile, or change what is named of one.

    Example: 'trainyard config set sepolia --endpoint https://rpc.example.org --market 0x… '
    '--start-block 123 --default'.
    """
    with telling_failures(as_json):
        from pydantic import ValidationError

        from trainyard.sdk.profiles import Config, Profile, read_config, write_config

        found = read_config()
        given: dict[str, Any] = {
            "endpoints": tuple(endpoint) if endpoint else None,
            "market": market,
            "chain_id": chain_id,
            "start_block": start_block,
            "gateways": tuple(gateway) if gateway else None,
            "store": store and store.expanduser().absolute(),
            "kubo": kubo,
            "keystore": keystore and keystore.expanduser().absolute(),
            "password_file": password_file and password_file.expanduser().absolute(),
            "page": page,
        }
        before = found.profiles[name].model_dump() if name in found.profiles else {}
        said = {key: value for key, value in given.items() if value is not None}
        try:
            profile = Profile.model_validate(before | said)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise WrongUseError(f"profile {name}: {where}: {first['msg']}") from error
        changed = Config(
            default=name if default else found.default,
            profiles={**found.profiles, name: profile},
        )
        write_config(changed)
        document = {"profile": name, **profile.model_dump(mode="json", exclude_none=True)}
        Output(as_json).result(document, [f"profile {name} is kept"])


@config.command(epilog=EXIT_CODES_HELP)
def remove(name: Name, as_json: Json = False) -> None:
    """Forget a profile.

    Example: 'trainyard config remove sepolia'.
    """
    with telling_failures(as_json):
        from trainyard.sdk.profiles import Config, profile_named, read_config, write_config

        found = read_config()
        profile_named(found, name)
        kept = {key: one for key, one in found.profiles.items() if key != name}
        default = None if found.default == name else found.default
        write_config(Config(default=default, profiles=kept))
        Output(as_json).result({"removed": name}, [f"profile {name} is forgotten"])
