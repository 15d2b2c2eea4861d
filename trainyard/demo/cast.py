"""Who takes part in the demo, each as an agent of its own."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainyard.demo.task import AUDITS, WORKERS
from trainyard.devnet.agents import Agent, password_file, start_agent
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import DEVNET_PARAMS

# What the accounts of the devnet are called on the screen.
_TRAINERS = ("Walt", "Wanda")
_POOL = ("Ada", "Bo", "Cleo", "Dan", "Eve")
REQUESTER = "Rita"


@dataclass(frozen=True, slots=True)
class Cast:
    """Agents by the name of whoever runs them, and everybody's name by address."""

    agents: dict[str, Agent]
    names: dict[str, str]
    addresses: dict[str, str]

    def name(self, address: str) -> str:
        return self.names.get(address.lower(), address[:10] + "…")

    @property
    def trainers(self) -> list[str]:
        return [name for name in _TRAINERS if name in self.agents]


@contextmanager
def assembled(devnet: Devnet, *, cheat: str | None) -> Iterator[Cast]:
    """Start all agents; they end with the block. With a cheat, Walt is the one."""
    # An honest task needs auditors only; a dispute three referees beside them.
    pool = _POOL[: AUDITS + (DEVNET_PARAMS.referees if cheat else 0)]
    accounts = {name: f"worker-{n + 1}" for n, name in enumerate(_TRAINERS[:WORKERS])}
    accounts |= {name: f"auditor-{n + 1}" for n, name in enumerate(pool)}
    with ExitStack() as ending, ThreadPoolExecutor(len(accounts)) as starting:
        begun = {
            name: starting.submit(_start, devnet, account, name, cheat)
            for name, account in accounts.items()
        }
        agents = {}
        for name, one in begun.items():
            agents[name] = one.result()
            ending.callback(agents[name].stop)
        known = {name: str(devnet.accounts[account].address) for name, account in accounts.items()}
        known[REQUESTER] = str(devnet.accounts["requester"].address)
        yield Cast(agents, {address.lower(): name for name, address in known.items()}, known)


def _start(devnet: Devnet, account: str, name: str, cheat: str | None) -> Agent:
    if name in _POOL:
        # Only drawn for duties.
        settings = {"policy.bond": 2 * DEVNET_PARAMS.seat_bond, "policy.concurrency": 0}
        return start_agent(devnet, account, settings)
    if cheat is None or name != _TRAINERS[0]:
        return start_agent(devnet, account)
    return start_agent(devnet, account, command=partial(_cheating, cheat))


def _cheating(cheat: str, home: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "worker_agent.cheating", cheat),
        *("--home", str(home), "--password-file", str(password_file(home))),
    ]
