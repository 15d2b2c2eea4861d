"""The devnet's agents: daemons of workers, each with a home, a key and a password of its own."""

import json
import os
import secrets
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import EndpointError, NoEndpointError
from trainyard.devnet.errors import DevnetError
from trainyard.devnet.files import write_whole
from trainyard.devnet.options import DEVNET_PARAMS
from trainyard.devnet.process import Child
from trainyard.protocol.ledger.book import ZERO_WORD

if TYPE_CHECKING:
    from trainyard.devnet.devnet import Devnet

_COMMAND = (sys.executable, "-m", "trainyard", "worker")
_INIT_S = 120.0
# Blocks come every second, and nobody waits for them to be buried.
_QUICK = {"chain.poll_s": 0.25, "chain.margin_s": 3.0, "chain.confirmations": 2}
# Trains, and is drawn as auditor and referee, for two seats at once.
_ALL_ROUND = {"policy.bond": 2 * DEVNET_PARAMS.seat_bond}
# Until all are registered; less than who brings a devnet up waits for a word.
_JOIN_S = 150.0
_LOOK_S = 0.2
# An agent first ends what it trains.
_STOP_S = 20.0


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    home: Path
    password: Path
    child: Child

    @property
    def log(self) -> Path:
        return self.child.log

    def stop(self) -> None:
        """Let it end in order."""
        self.child.stop(_STOP_S)


def start_agents(
    devnet: "Devnet",
    parts: ExitStack,
    on_end: Callable[[Child], None],
    report: Callable[[str], None],
) -> list[Agent]:
    """Start as many as the options say; they end, one after the other, with `parts`."""
    agents = []
    for index in range(devnet.options.agents):
        agent = start_agent(devnet, f"worker-{index + 1}", _ALL_ROUND, on_end=on_end)
        parts.callback(agent.stop)
        agents.append(agent)
        report(f"{agent.name} runs with {agent.home}")
    return agents


def wait_for_agents(
    devnet: "Devnet", agents: Sequence[Agent], report: Callable[[str], None]
) -> list[Agent]:
    """Wait until all are registered, and in the pool if they have a bond; those that are not.

    Before that nobody could post a task. An agent that has ended is not waited for.
    """
    left = list(agents)
    if left:
        report(f"waiting until {', '.join(one.name for one in left)} can be found on the market")
    client = MarketClient(Endpoints([devnet.url], chain_id=devnet.chain_id), devnet.market)
    deadline = time.monotonic() + _JOIN_S
    while True:
        try:
            left = [one for one in left if not _is_found(client, devnet, one)]
        except (EndpointError, NoEndpointError):
            devnet.require_chain()
        if all(one.child.ended.is_set() for one in left) or time.monotonic() > deadline:
            return left
        time.sleep(_LOOK_S)


def _is_found(client: MarketClient, devnet: "Devnet", agent: Agent) -> bool:
    worker = client.worker(str(devnet.accounts[agent.name].address))
    if worker.env_class == ZERO_WORD:
        return False
    settings = tomllib.loads((agent.home / "config.toml").read_text())
    return worker.pool_index > 0 or not settings.get("policy", {}).get("bond", 0)


def start_agent(
    devnet: "Devnet",
    name: str,
    settings: Mapping[str, object] | None = None,
    *,
    command: Callable[[Path], list[str]] | None = None,
    on_end: Callable[[Child], None] = lambda child: None,
    environment: Mapping[str, str] | None = None,
) -> Agent:
    """Start the agent of the account `name`; to be ended by whoever starts it."""
    home = make_home(devnet, name, settings)
    # What a machine remembers of keys is forgotten with the devnet that made them.
    more = {"XDG_STATE_HOME": str(home.parent / "state"), **(environment or {})}
    child = Child(name, (command or run_command)(home), home.with_suffix(".log"), on_end, more)
    return Agent(name, home, password_file(home), child)


def run_command(home: Path) -> list[str]:
    secret = ("--password-file", str(password_file(home)))
    return [*_COMMAND, "run", *as_root(), "--home", str(home), *secret]


def as_root() -> tuple[str, ...]:
    """What an agent is told that is root: on a devnet all tasks are one's own."""
    return ("--allow-root",) if os.geteuid() == 0 else ()


def password_file(home: Path) -> Path:
    return home.with_suffix(".password")


def make_home(devnet: "Devnet", name: str, settings: Mapping[str, object] | None = None) -> Path:
    """An agent's folder with its settings and its key, made by the command that operators use.

    `settings` are beyond those of a devnet, by their place in the file, such as `policy.bond`.
    """
    home = devnet.place.agent(name)
    if (home / "config.toml").exists():
        return home
    home.parent.mkdir(exist_ok=True)
    if not password_file(home).exists():
        write_whole(password_file(home), secrets.token_urlsafe(24) + "\n")
    content = devnet.content
    if content.kubo:
        kept = ["--kubo", content.kubo]
    else:
        # What is in its folder the devnet itself serves.
        kept = ["--store", str(content.store), "--advertise", content.gateway]
        kept += ["--board", content.gateway]
    devnets = _QUICK | {"content.allow_private": "true"}
    command = [
        *(*_COMMAND, "init", "--json", "--home", str(home)),
        *("--endpoint", devnet.url, "--chain-id", str(devnet.chain_id)),
        *("--market", devnet.market, "--start-block", str(devnet.start_block)),
        *("--gateway", content.gateway, *kept),
        *(("--set", f'dapp.url="{devnet.dapp}"') if devnet.dapp else ()),
        *(f"--set={name}={value}" for name, value in (devnets | dict(settings or {})).items()),
        *(part for setting in devnet.options.agent_settings for part in ("--set", setting)),
        *("--password-file", str(password_file(home)), "--key-file", "-"),
    ]
    # Through a pipe: a key has no business on a disk or a command line.
    made = subprocess.run(
        command,
        input=f"0x{devnet.accounts[name].key.hex()}",
        capture_output=True,
        text=True,
        timeout=_INIT_S,
    )
    if made.returncode != 0:
        raise DevnetError(f"no home for {name} could be made: {made.stderr.strip()}")
    address = json.loads(made.stdout)["address"]
    if address != devnet.accounts[name].address:
        raise DevnetError(f"the home of {name} has the key of {address}: remove {home}")
    return home
