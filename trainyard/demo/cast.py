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

# Who copies is an auditor; all others who cheat train, and alone, so that nobody stops them sooner.
COPY, WITHHOLD = "copy", "withhold"
WHAT_IT_DOES = {
    "lazy": "makes its states up instead of training",
    "skip": "claims to have trained, and leaves all steps out",
    "lr": "trains with another learning rate than was asked for",
    COPY: "audits by copying what another auditor has committed to",
    "garbage": "commits to bytes that are no states",
    WITHHOLD: "trains as it should, and shows nothing of what it claims",
}
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


def workers_with(cheat: str | None) -> int:
    """How many train."""
    return WORKERS if cheat in (None, COPY) else 1


def cheater(cheat: str) -> str:
    return _POOL[0] if cheat == COPY else _TRAINERS[0]


@contextmanager
def assembled(devnet: Devnet, *, cheat: str | None) -> Iterator[Cast]:
    """Start all agents; they end with the block."""
    # An honest trace needs auditors only; a dispute three referees beside them.
    referees = 0 if cheat in (None, COPY) else DEVNET_PARAMS.referees
    pool = _POOL[: AUDITS + referees]
    trainers = _TRAINERS[: workers_with(cheat)]
    accounts = {name: f"worker-{n + 1}" for n, name in enumerate(trainers)}
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
    # Some are only drawn for duties, the others only train.
    is_drawn = name in _POOL
    settings = {
        "policy.bond": 2 * DEVNET_PARAMS.seat_bond if is_drawn else 0,
        "policy.concurrency": 0 if is_drawn else 1,
    }
    if cheat == WITHHOLD:
        # That nothing is served is said at the last moment: long enough before it for any machine.
        settings["chain.margin_s"] = 25
    if cheat is None or name != cheater(cheat):
        return start_agent(devnet, account, settings)
    return start_agent(devnet, account, settings, command=partial(_cheating, cheat))


def _cheating(cheat: str, home: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "worker_agent.cheating", cheat),
        *("--home", str(home), "--password-file", str(password_file(home))),
    ]
