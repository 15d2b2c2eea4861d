"""The agent's settings, from `config.toml` in its folder, and what lies where in that folder."""

import tomllib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from trainyard.chain.fees import GWEI, FeePolicy
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.profiles import GatewayAddress, gateway_address
from worker_agent.limits import Limits
from worker_agent.machine import cores_here, memory_for_tasks
from worker_agent.policy import Address, Policy

_FORM = ConfigDict(frozen=True, extra="forbid")
_JOIN_CONFIRMATIONS = 2


class SettingsError(PermanentError):
    """A setting is missing or cannot be; the message names it, and says what to write."""


class TokenMarketError(PermanentError):
    """The market's money is a token."""

    def __init__(self, market: str, token: str) -> None:
        super().__init__(
            f"the market {market} holds the token {token}, and this agent puts down only the "
            "chain's own currency: name a market in that currency in [chain]"
        )


def host_and_port(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


def _listening(text: str) -> str:
    try:
        host, _ = host_and_port(gateway_address(f"http://{text}").removeprefix("http://"))
    except ValueError:
        host = ""
    if not host:
        raise ValueError('where to listen is "host:port", such as "0.0.0.0:8490"')
    return text


def _relaying(text: str) -> str:
    try:
        host, _ = host_and_port(gateway_address(f"http://{text}").removeprefix("http://"))
    except ValueError:
        host = ""
    if not host:
        raise ValueError('where a relay is is "host:port", such as "relay.example.org:7700"')
    return text


def _is_wildcard(listen: str) -> bool:
    try:
        return ip_address(host_and_port(listen)[0]).is_unspecified
    except ValueError:
        return False


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
    # How deep a post has to lie before its task is joined; see `deep_enough_to_join`.
    join_confirmations: int | None = Field(default=None, ge=1)
    poll_s: float = Field(default=2.0, gt=0)
    # What would not be done so long before its deadline is not begun, or given up. What is done is
    # sent up to the last second: to come too late costs a fee, to say nothing a part of the stake.
    margin_s: float = Field(default=30.0, ge=0)
    # The most that a unit of gas may cost, however busy the chain is.
    max_fee_gwei: int = Field(default=500, gt=0)
    # How far an endpoint is followed that names a tip; what waits is raised beyond that.
    max_tip_gwei: int = Field(default=50, gt=0)

    @property
    def deep_enough_to_join(self) -> int:
        """Most reorgs are of one block, and more would be waited for before every task."""
        return self.join_confirmations or min(self.confirmations, _JOIN_CONFIRMATIONS)

    @property
    def fees(self) -> FeePolicy:
        return FeePolicy(
            most_wei=self.max_fee_gwei * GWEI,
            most_tip_wei=self.max_tip_gwei * GWEI,
            limit_name="max_fee_gwei in [chain]",
        )


class ContentPlaces(BaseModel):
    model_config = _FORM

    # A folder of the embedded store; below the agent's own folder if not given.
    store: Path | None = None
    kubo: str | None = None
    gateways: tuple[str, ...] = ()
    # Whether the store or node that is named here is this agent's alone.
    is_ours: bool = False
    # Where to serve all of the store, for those who have no Kubo node to do so.
    listen: Annotated[str, AfterValidator(_listening)] | None = None
    # Where others find what we have, if it is not where we listen.
    advertise: GatewayAddress | None = None
    # Where the profile is put up, which says so.
    boards: tuple[str, ...] = ()
    # Whether other workers' gateways are asked at addresses that not everybody can reach.
    allow_private: bool = False

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.listen is not None and self.kubo is not None:
            raise ValueError(
                "listen serves the embedded store: without it, advertise the gateway of the Kubo "
                "node if there is one"
            )
        if self.listen is not None and self.advertise is None and _is_wildcard(self.listen):
            raise ValueError(
                f"nobody can connect to {self.listen}: say with advertise where others find it"
            )
        return self

    @property
    def gateway(self) -> str | None:
        """Where others find what we have, as our profile says it."""
        return self.advertise or (self.listen and f"http://{self.listen}")

    @property
    def is_served(self) -> bool:
        """Whether others can fetch what we have, as far as settings tell."""
        return self.kubo is not None or self.gateway is not None

    @property
    def is_own(self) -> bool:
        """Whether nobody else counts on what we pinned: the same content has one pin for all."""
        return self.is_ours or (self.store is None and self.kubo is None)


class PeerSettings(BaseModel):
    """Where other workers of a task reach this one."""

    model_config = _FORM

    host: str = "127.0.0.1"
    # The first port of as many as there are tasks at once; zero for whichever is free.
    port: int = Field(default=0, ge=0, le=65_535)
    # What is written on the peer card, if it is not where the agent listens.
    advertise: str | None = None
    # A relay's address, for a machine that nobody can reach.
    relay: Annotated[str, AfterValidator(_relaying)] | None = None


class DappSettings(BaseModel):
    """Who is told how training goes; best effort, and signed by the wallet."""

    model_config = _FORM

    url: str | None = Field(default=None, pattern="^https?://")


class SandboxSettings(BaseModel):
    model_config = _FORM

    memory_bytes: int = Field(default_factory=memory_for_tasks, gt=0)
    disk_bytes: int = Field(default=20 << 30, gt=0)
    processes: int = Field(default=1024, gt=0)
    cores: float = Field(default_factory=cores_here, gt=0)


def limits_of(settings: SandboxSettings) -> Limits:
    """What the operator lets a task use."""
    return Limits(
        memory_bytes=settings.memory_bytes,
        disk_bytes=settings.disk_bytes,
        processes=settings.processes,
        # To hold it to all that there are would cost time and change nothing.
        cores=settings.cores if settings.cores < cores_here() else None,
    )


class Settings(BaseModel):
    model_config = _FORM

    chain: ChainSettings
    content: ContentPlaces = ContentPlaces()
    policy: Policy = Policy()
    peers: PeerSettings = PeerSettings()
    sandbox: SandboxSettings = SandboxSettings()
    dapp: DappSettings = DappSettings()
    # Where earnings go; they stay in the market if not given.
    payout: Address | None = None
    # What stays there all the same, for the next stakes; None for as much as was needed so far.
    payout_float: int | None = Field(default=None, ge=0)
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
    def notices(self) -> Path:
        """What requesters are told of tasks that were given up."""
        return self.folder / "notices.json"

    @property
    def profile(self) -> Path:
        """What others are shown of this worker: the digest of its profile."""
        return self.folder / "profile"

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

    @property
    def gateway_log(self) -> Path:
        return self.folder / "gateway.log"

    @property
    def scratch(self) -> Path:
        """Where processes for tasks put what nobody needs after them."""
        return self.folder / "scratch"

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks"

    def task(self, task: int) -> Path:
        return self.tasks / str(task)

    @property
    def aside(self) -> Path:
        """Folders of tasks whose numbers other tasks have after a reorg."""
        return self.folder / "aside"

    def past(self, task: int) -> Path:
        """What is kept of a task when all else was removed."""
        return self.folder / "past" / str(task)

    def record(self, task: int) -> Path:
        """Where reports find what is known of a task."""
        folder = self.task(task)
        return folder if folder.is_dir() else self.past(task)


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
