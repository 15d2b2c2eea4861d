"""Markets by name, in the user's `config.toml`: where each is, and which key pays there."""

import json
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.sdk.errors import NoMarketError

_ADDRESS = r"^0x[0-9a-fA-F]{40}$"


class Profile(BaseModel):
    """One market. Keys are in keystore files, which are only named here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoints: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="JSON-RPC endpoints of the chain, the preferred one first"
    )
    market: Annotated[str, Field(pattern=_ADDRESS)] = Field(description="the market's address")
    chain_id: int | None = Field(default=None, ge=1, description="endpoints of others are refused")
    start_block: int = Field(default=0, ge=0, description="the block of the market's deployment")
    gateways: tuple[str, ...] = Field(default=(), description="gateways to fetch content from")
    store: Path | None = Field(default=None, description="folder where content is kept")
    kubo: str | None = Field(default=None, description="a Kubo node that keeps content instead")
    keystore: Path | None = Field(default=None, description="the encrypted key that pays")
    password_file: Path | None = Field(
        default=None, description="its password, in a file that nobody else can read"
    )
    page: str | None = Field(default=None, description="the dapp, for figures of running tasks")


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    # Which profile is meant where none is named; without, the devnet of this machine.
    default: str | None = None
    profiles: dict[str, Profile] = Field(default_factory=dict)


def config_folder() -> Path:
    given = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".config"
    return base / "trainyard"


def config_file() -> Path:
    return config_folder() / "config.toml"


def default_keystore() -> Path:
    """Where `trainyard account new` puts a key if nobody says otherwise."""
    return config_folder() / "key.json"


def read_config(path: Path | None = None) -> Config:
    """What the user has set; nothing is, where there is no file."""
    path = path or config_file()
    try:
        found = tomllib.loads(path.read_text())
        return Config.model_validate(found)
    except FileNotFoundError:
        return Config()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NoMarketError(f"{path} is no TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NoMarketError(f"{path}: {where}: {first['msg']}") from error


def write_config(config: Config, path: Path | None = None) -> None:
    """Write all of it anew, readable by the user alone."""
    path = path or config_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [] if config.default is None else [f"default = {_text(config.default)}", ""]
    for name, profile in config.profiles.items():
        lines.append(f"[profiles.{_text(name)}]")
        values = profile.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        lines += [*(f"{key} = {_text(value)}" for key, value in values.items()), ""]
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as out:
        out.write("\n".join(lines))
    unfinished.replace(path)


def profile_named(config: Config, name: str) -> Profile:
    found = config.profiles.get(name)
    if found is None:
        known = ", ".join(sorted(config.profiles)) or "none"
        raise NoMarketError(
            f"there is no profile {name!r} in {config_file()} (there are: {known}): make one with "
            f"'trainyard config set {name} --endpoint URL --market ADDRESS'"
        )
    return found


def _text(value: Any) -> str:
    # Of strings, numbers and lists of strings JSON and TOML have the same text.
    return json.dumps(value, ensure_ascii=True)
