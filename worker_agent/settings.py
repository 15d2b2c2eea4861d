"""The agent's settings, from `config.toml` in its folder, and what lies where in that folder."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.protocol.errors import PermanentError
from worker_agent.policy import Address, Policy

_FORM = ConfigDict(frozen=True, extra="forbid")


class SettingsError(PermanentError):
    """A setting is missing or cannot be; the message names it, and says what to write."""


class ChainSettings(BaseModel):
    model_config = _FORM

    endpoints: tuple[str, ...] = Field(min_length=1)
    chain_id: int = Field(gt=0)
    market: Address
    # The block in which the market was deployed.
    start_block: int = Field(ge=0)
    # An address to be told of new blocks by; only to look sooner.
    wake_by: str | None = None
    # How deep a transaction has to lie before it is forgotten about.
    confirmations: int = Field(default=12, ge=1)
    poll_s: float = Field(default=2.0, gt=0)
    # So long before a deadline an act is sent at the latest, or not at all.
    margin_s: float = Field(default=30.0, ge=0)


class ContentPlaces(BaseModel):
    model_config = _FORM

    # A folder of the embedded store; below the agent's own folder if not given.
    store: Path | None = None
    kubo: str | None = None
    gateways: tuple[str, ...] = ()


class PeerSettings(BaseModel):
    """Where other workers of a task reach this one."""

    model_config = _FORM

    host: str = "127.0.0.1"
    # The first port of as many as there are tasks at once; zero for whichever is free.
    port: int = Field(default=0, ge=0, le=65_535)
    # What is written on the peer card, if it is not where the agent listens.
    advertise: str | None = None
    # A relay's address, for a machine that nobody can reach.
    relay: str | None = None


class SandboxSettings(BaseModel):
    model_config = _FORM

    memory_bytes: int = Field(default=4 << 30, gt=0)
    disk_bytes: int = Field(default=20 << 30, gt=0)
    processes: int = Field(default=1024, gt=0)


class Settings(BaseModel):
    model_config = _FORM

    chain: ChainSettings
    content: ContentPlaces = ContentPlaces()
    policy: Policy = Policy()
    peers: PeerSettings = PeerSettings()
    sandbox: SandboxSettings = SandboxSettings()
    # Where earnings go; they stay in the market if not given.
    payout: Address | None = None
    # Prometheus asks here; loopback only.
    metrics_port: int | None = Field(default=None, ge=0, le=65_535)


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one agent."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def keystore(self) -> Path:
        return self.folder / "keystore.json"

    @property
    def chain_store(self) -> Path:
        """Places in the chain, and the journal of what was signed."""
        return self.folder / "chain.sqlite"

    @property
    def notes(self) -> Path:
        """What the agent knows beyond the chain."""
        return self.folder / "notes.sqlite"

    @property
    def content_store(self) -> Path:
        return self.folder / "content"

    @property
    def control(self) -> Path:
        """The socket by which commands reach a running agent."""
        return self.folder / "control.sock"

    @property
    def paused(self) -> Path:
        """There while the operator wants nothing new to be taken."""
        return self.folder / "paused"

    @property
    def speed(self) -> Path:
        """What this machine was measured to do."""
        return self.folder / "speed.json"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    def task(self, task: int) -> Path:
        return self.folder / "tasks" / str(task)


def read_settings(home: Home) -> Settings:
    try:
        return Settings.model_validate(tomllib.loads(home.config.read_text()))
    except FileNotFoundError as error:
        raise SettingsError(
            f"{home.config} is missing: run 'trainyard worker init --home {home.folder}'"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{home.config} is no TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{home.config}: {where}: {first['msg']}") from error
