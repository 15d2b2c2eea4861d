"""The dapp's settings, from TRAINYARD_DAPP_… variables or from whoever starts it."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

from eth_utils.address import is_address, to_checksum_address
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from dapp.errors import SettingsError

PREFIX = "TRAINYARD_DAPP_"
MIB = 1 << 20
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FIXES = {
    "endpoints": "name JSON-RPC addresses of the chain, separated by commas",
    "chain_id": "give the chain's id, such as 1 or 1337",
    "market": "give the address of the deployed market, 0x and 40 hexadecimal digits",
    "start_block": "give the block in which the market was deployed",
    "database_url": "give sqlite:///file or postgresql+psycopg://user@host/name",
    "public_url": "give the address at which browsers reach the server, such as https://host",
}


class Settings(BaseSettings):
    """All of it is checked when the server starts, and never changes afterwards."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid"
    )

    # The chain, and the market on it.
    endpoints: Annotated[tuple[str, ...], NoDecode, Field(min_length=1)]
    chain_id: Annotated[int, Field(gt=0)]
    market: str
    start_block: Annotated[int, Field(ge=0)]
    chain_name: str = "Ethereum"
    # For wallets; the first endpoint is often one that only the server may use.
    wallet_rpc_url: str | None = None
    explorer_tx_url: str | None = None
    poll_s: Annotated[float, Field(gt=0)] = 1.0
    confirmations: Annotated[int, Field(ge=1)] = 12
    depth: Annotated[int, Field(ge=1)] = 128
    # Blocks that the index may be behind before /readyz says so.
    most_lag: Annotated[int, Field(ge=1)] = 20

    # Where things are kept.
    data: Path = Path.home() / ".local" / "share" / "trainyard" / "dapp"
    database_url: str | None = None
    store: Path | None = None
    kubo: str | None = None
    gateways: Annotated[tuple[str, ...], NoDecode] = ()
    # A trustless gateway that browsers reach.
    gateway_url: str | None = None

    # Serving.
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8460
    public_url: str | None = None
    # How many proxies stand before it, whose X-Forwarded-For is believed.
    proxies: Annotated[int, Field(ge=0, le=8)] = 0
    relay_port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    log_json: bool = True

    # Limits.
    upload_bytes: Annotated[int, Field(ge=1)] = 4096 * MIB
    multipart_bytes: Annotated[int, Field(ge=1)] = 64 * MIB
    json_bytes: Annotated[int, Field(ge=1024)] = 2 * MIB
    feed_bytes: Annotated[int, Field(ge=1024)] = MIB
    draft_bytes: Annotated[int, Field(ge=1024)] = 256 << 10
    drafts: Annotated[int, Field(ge=1)] = 50
    # Of uploads that are not finished, all together.
    pending_upload_bytes: Annotated[int, Field(ge=1)] = 16384 * MIB
    upload_for_s: Annotated[int, Field(ge=60)] = 24 * 3600
    body_s: Annotated[float, Field(gt=0)] = 20.0
    requests_per_s: Annotated[float, Field(gt=0)] = 50.0
    request_burst: Annotated[int, Field(ge=1)] = 200
    # Of what costs much: uploads, previews, rehearsals.
    costly_per_min: Annotated[float, Field(gt=0)] = 30.0
    sse_clients: Annotated[int, Field(ge=1)] = 1000
    sse_clients_per_address: Annotated[int, Field(ge=1)] = 600
    kept_points: Annotated[int, Field(ge=100)] = 4000
    kept_lines: Annotated[int, Field(ge=100)] = 5000
    kept_live: Annotated[int, Field(ge=100)] = 20_000
    kept_live_bytes: Annotated[int, Field(ge=MIB)] = 64 * MIB
    # Of what strangers put into the store, all together, and how long it stays if no task names it.
    stored_bytes: Annotated[int, Field(ge=1)] = 65_536 * MIB
    # Of it, what one address may take.
    stored_bytes_per_address: Annotated[int, Field(ge=1)] = 8192 * MIB
    stored_for_s: Annotated[int, Field(ge=3600)] = 30 * 24 * 3600
    # How many requests at once may wait for what others have, and for the engine.
    fetches: Annotated[int, Field(ge=1, le=32)] = 8
    engine_waiters: Annotated[int, Field(ge=0, le=32)] = 4

    # Only for the devnet, which starts the server itself.
    faucet_key_file: Path | None = None
    faucet_wei: Annotated[int, Field(ge=1)] = 10 * 10**18
    is_devnet: bool = False

    @field_validator("endpoints", "gateways", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("market")
    @classmethod
    def _checksum(cls, value: str) -> str:
        if not is_address(value):
            raise ValueError(f"{value!r} is no address")
        return to_checksum_address(value)

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("sqlite:///", "postgresql+psycopg://")):
            raise ValueError(f"{value.split(':', 1)[0]!r} is no database that is known here")
        return value

    @field_validator("public_url")
    @classmethod
    def _origin(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("it begins with http:// or https://")
        return None if value is None else value.rstrip("/")

    @model_validator(mode="after")
    def _faucet_of_devnet(self) -> "Settings":
        # INVARIANT: a server of any other chain has no key at all.
        if self.faucet_key_file is not None and not self.is_devnet:
            raise ValueError("FAUCET_KEY_FILE is for a devnet alone; unset it")
        return self

    @model_validator(mode="after")
    def _named_where_others_reach_it(self) -> "Settings":
        # INVARIANT: a sign-in is bound to this server's name, and not to what a request says.
        if self.public_url is None and self.host not in LOOPBACK:
            raise ValueError(
                f"PUBLIC_URL is missing, and HOST is {self.host}, which others reach; "
                "give the address at which browsers reach the server, such as https://host"
            )
        return self

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.data / 'dapp.sqlite'}"

    @property
    def content_store(self) -> Path:
        return self.store or self.data / "content"

    @property
    def uploads(self) -> Path:
        return self.data / "uploads"

    @property
    def scratch(self) -> Path:
        return self.data / "scratch"

    @property
    def exports(self) -> Path:
        return self.data / "exports"


def read_settings(**given: Any) -> Settings:
    """The settings of the environment, and over them those that are given."""
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        variable = f"{PREFIX}{name.upper()}" if name else PREFIX + "…"
        reason = first["msg"].removeprefix("Value error, ")
        fix = _FIXES.get(name)
        raise SettingsError(f"{variable}: {reason}" + (f"; {fix}" if fix else "")) from None


def scratch_folder(settings: Settings, prefix: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder of one piece of work, on the disk where all else is."""
    settings.scratch.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=settings.scratch, prefix=prefix)
