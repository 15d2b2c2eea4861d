"""A whole market for a browser: chain, contents, agents and the page's server.

Says where everything is in one line of JSON, and ends when its input does. Lines of its input are
orders: `pause` and `resume` stop and wake all agents.
"""

import json
import os
import signal
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from trainyard.devnet.agents import Agent, password_file, start_agent
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import DEVNET_PARAMS, Options

_TRAINERS, _AUDITORS = ("worker-1", "worker-2"), ("auditor-1", "auditor-2")


def main() -> None:
    cheat = sys.argv[1] if len(sys.argv) > 1 else None
    options = Options(chain="anvil", agent_settings=(), dapp=True)
    with Devnet(options=options) as devnet, ExitStack() as ending:
        agents = [_start(devnet, one, ending, cheat=cheat) for one in _trainers(cheat)]
        agents += [_start(devnet, one, ending) for one in _members(cheat)]
        _say(devnet)
        for line in sys.stdin:
            _obey(line.strip(), agents)


def _trainers(cheat: str | None) -> tuple[str, ...]:
    return _TRAINERS if cheat is None else _TRAINERS[:1]


def _members(cheat: str | None) -> tuple[str, ...]:
    """Auditors, and where somebody cheats referees for the dispute beside them."""
    referees = 0 if cheat is None else DEVNET_PARAMS.referees
    return _AUDITORS + tuple(f"auditor-{n + 3}" for n in range(referees))


def _start(devnet: Devnet, name: str, ending: ExitStack, *, cheat: str | None = None) -> Agent:
    is_drawn = name.startswith("auditor")
    settings = {
        "policy.bond": 2 * DEVNET_PARAMS.seat_bond if is_drawn else 0,
        "policy.concurrency": 0 if is_drawn else 1,
    }
    command = None if cheat is None else partial(_cheating, cheat)
    agent = start_agent(devnet, name, settings, command=command)
    ending.callback(agent.stop)
    return agent


def _cheating(cheat: str, home: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "worker_agent.cheating", cheat),
        *("--home", str(home), "--password-file", str(password_file(home))),
    ]


def _say(devnet: Devnet) -> None:
    people: dict[str, Any] = {
        name: {"address": str(one.address), "key": f"0x{one.key.hex().removeprefix('0x')}"}
        for name, one in devnet.accounts.items()
        if name in ("requester", "owner")
    }
    place = {
        "url": devnet.dapp,
        "rpc": devnet.url,
        "chain_id": devnet.chain_id,
        "market": devnet.market,
        "people": people,
    }
    print(json.dumps(place), flush=True)


def _obey(order: str, agents: list[Agent]) -> None:
    signals = {"pause": signal.SIGSTOP, "resume": signal.SIGCONT}
    if order in signals:
        for agent in agents:
            os.kill(agent.child.pid, signals[order])
        print(json.dumps({"done": order}), flush=True)


if __name__ == "__main__":
    main()
