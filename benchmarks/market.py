"""What a market costs beside the training in it: `make bench-market`.

    python -m benchmarks.market [--quick] [--only PART]     the figures; last, one line of JSON

Real agents on a devnet of their own, with blocks every second and windows of no length. Of the time
from a post to its settlement, training is what passes between the workers' first process and their
last state, which any training has; the rest is the market's. Beside it stands a stricter figure, of
all that is not steps: what it takes to make the sandbox, to load TensorFlow and to meet the others
is then the market's as well.
"""

import math
import os
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from benchmarks.anvil import Anvil, running_anvil
from benchmarks.arena import ENDED, REWARD, Arena, Player, running_arena
from benchmarks.reporting import Figure, report
from scripts.deploy_settings import read_deploy_settings
from trainyard.chain import load_artifact
from trainyard.chain.calls import MarketCalls
from trainyard.chain.cursor import Cursor
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.rpc import Rpc
from trainyard.chain.store import Store
from trainyard.protocol.market import NATIVE_CURRENCY, Policy, TaskState
from worker_agent.sight import Watcher

_EVENTS, _QUICK_EVENTS = 100_000, 20_000
_PER_BLOCK = 500
_PATIENCE_S = 120.0
_IDLE_S, _QUICK_IDLE_S = 60.0, 20.0
# As an operator's agent looks at the chain; those of the settlement look more often.
_IDLE_POLL_S = _FLEET_POLL_S = 2.0
_POLL_S = 0.5
_FLEET_S = 3600.0
# Agents and tasks; and people beside the fleet.
_FLEET, _QUICK_FLEET, _OTHERS = (50, 200), (3, 6), 8
# One in ten of the fleet's tasks is audited by another agent of it.
_AUDITED_EVERY = 10
_UNAUDITED: dict[str, Any] = {
    "policy": Policy.REPLICATE,
    **dict.fromkeys(("audits", "min_audits", "audit_fee", "segments"), 0),
}
_GAS = 10_000_000


@dataclass(frozen=True, slots=True)
class Took:
    """From post to settled, in seconds; and of that in training, and in its steps alone."""

    all: float
    trained: float
    stepped: float


def measure_overhead(arena: Arena) -> Took:
    """Two workers and one audit."""
    payer = arena.person()
    workers = [arena.start(f"trainer-{n}", takes=[payer.address]) for n in range(2)]
    member = arena.start("member", bond=arena.net.params.seat_bond)
    arena.wait_for_members(member)
    _wait_for_register(arena, [one.address for one in workers])
    began = time.time()
    number = arena.post(payer, workers=2)
    task = arena.wait_for(number, *ENDED)
    took = time.time() - began
    if task.state is not TaskState.SETTLED:
        raise SystemExit(f"the task ended as {task.state.name}")
    # The slower of the two counts: both have to be done.
    folders = [worker.home / "tasks" / str(number) for worker in workers]
    found = Took(took, max(map(_trained_s, folders)), max(map(_stepped_s, folders)))
    for player in (*workers, member):
        player.stop()
    return found


def _trained_s(folder: Path) -> float:
    """From the first process of a runner to its last state."""
    started = (folder / "jobs" / "train.json").stat().st_mtime
    return (folder / "run" / "ended").stat().st_mtime - started


def _stepped_s(folder: Path) -> float:
    """From the state before the first step to that after the last."""
    kept = [path.stat().st_mtime for path in (folder / "run" / "states").glob("*.safetensors")]
    return max(kept) - min(kept)


def measure_idle(arena: Arena, seconds: float) -> tuple[float, float]:
    """Of an agent without a task that serves what it has: percent of a core, and megabytes."""
    bond = arena.net.params.seat_bond
    player = arena.start("idle", bond=bond, poll_s=_IDLE_POLL_S, serves=True)
    _wait_for_register(arena, [player.address])
    time.sleep(10.0)
    before, began = _used_by(player), time.monotonic()
    time.sleep(seconds)
    after, passed = _used_by(player), time.monotonic() - began
    if before.keys() != after.keys():
        raise SystemExit("an agent without a task began or ended a process")
    player.stop()
    cpu_s = sum(after[pid][0] - before[pid][0] for pid in after)
    return 100 * cpu_s / passed, sum(resident for _, resident in after.values()) / 1e6


def _used_by(player: Player) -> dict[int, tuple[float, int]]:
    """Processor time and memory of an agent, and of its gateway, which is a process of its own."""
    agent = psutil.Process(player.process.pid)
    found = {}
    for process in (agent, *agent.children(recursive=True)):
        times = process.cpu_times()
        found[process.pid] = times.user + times.system, process.memory_info().rss
    return found


def measure_fleet(arena: Arena, agents: int, tasks: int) -> tuple[int, float]:
    """Small tasks for many agents of one machine: how many were settled, and in how long."""
    payer = arena.person()
    # As many train at once as the machine has cores, and one more takes the next task.
    turns = (os.cpu_count() or 1) + 1
    players = [
        arena.start(
            f"fleet-{n}",
            takes=[payer.address],
            bond=arena.net.params.seat_bond,
            at_once=1,
            turns=turns,
            poll_s=_FLEET_POLL_S if agents > turns else _POLL_S,
        )
        for n in range(agents)
    ]
    arena.wait_for_members(*players)
    began = time.time()
    numbers = [
        arena.post(payer, **({} if number % _AUDITED_EVERY == 0 else _UNAUDITED))
        for number in range(tasks)
    ]
    book = arena.wait(
        "the fleet's tasks",
        lambda book: all(book.tasks[number].state in ENDED for number in numbers),
        patience_s=_FLEET_S,
    )
    took = time.time() - began
    states = Counter(book.tasks[number].state for number in numbers)
    for player in players:
        player.stop()
    _check_money(arena, [one.address for one in players], numbers)
    return states[TaskState.SETTLED], took


def _check_money(arena: Arena, workers: list[str], numbers: list[int]) -> None:
    """The market holds what it owes to everybody, and nobody of the fleet lost anything."""
    book = arena.book()
    held, owed = arena.solvency()
    known = sum(one.credit for one in book.accounts.values())
    known += sum(one.bond for one in book.workers.values())
    if not held == owed == known:
        raise SystemExit(f"the market holds {held}, owes {owed}, and everybody has {known}")
    stuck = [number for number in numbers if book.tasks[number].locked]
    if stuck:
        raise SystemExit(f"money is stuck in {stuck}")
    for who in workers:
        account, bond = book.account(who), book.workers[who].bond
        # Its stakes are back in its credit, with a reward for each; and its bond is whole.
        if bond != arena.net.params.seat_bond or account.credit < account.settled * REWARD:
            raise SystemExit(f"{who} has {account.credit} and {bond} for {account.settled} tasks")
    settled = sum(book.tasks[number].state is TaskState.SETTLED for number in numbers)
    if sum(book.account(who).settled for who in workers) != settled:
        raise SystemExit("the workers were paid for another number of tasks than were settled")


def measure_catching_up(events: int) -> tuple[float, float]:
    """Events a second from nothing to the head, and that over what the endpoint alone gives."""
    with running_anvil(accounts=2) as anvil, TemporaryDirectory() as name:
        market, start = _deploy(anvil)
        _deposit(anvil, market, events)
        chain_id = anvil.web3.eth.chain_id
        url = anvil.url
        # An endpoint on a busy machine is slow, and not gone.
        endpoints = Endpoints([url], chain_id=chain_id, timeout_s=_PATIENCE_S)
        ours, theirs = [], []
        for turn in range(3):
            store = Store(Path(name) / f"{turn}.sqlite", chain_id=chain_id, market=market)
            asking = _Asking(url, chain_id)
            cursor = Cursor(asking, store, market, start=start)
            began = time.perf_counter()
            watcher = Watcher(asking, cursor, NATIVE_CURRENCY)
            watcher.look()
            ours.append(watcher.events / (time.perf_counter() - began))
            store.close()
            theirs.append(_raw_pace(endpoints, asking.asked, watcher.events))
    return sorted(ours)[1], sorted(ours)[1] / sorted(theirs)[1]


_Question = tuple[str, list[list[Any]]]


class _Asking(Endpoints):
    """One endpoint, and all that it was asked and gave an answer to, message by message."""

    def __init__(self, url: str, chain_id: int) -> None:
        super().__init__([url], chain_id=chain_id, timeout_s=_PATIENCE_S)
        self.asked: list[_Question] = []
        self._rpcs = [_NotingRpc(url, self.asked)]


class _NotingRpc(Rpc):
    def __init__(self, url: str, asked: list[_Question]) -> None:
        super().__init__(url, timeout_s=_PATIENCE_S)
        self._asked = asked

    def request(self, method: str, *params: Any) -> Any:
        answer = super().request(method, *params)
        self._asked.append((method, [list(params)]))
        return answer

    def batch(self, method: str, each: Sequence[Sequence[Any]]) -> list[Any]:
        answers = super().batch(method, each)
        if len(each) > 1:
            self._asked.append((method, [list(params) for params in each]))
        return answers


def _raw_pace(endpoints: Endpoints, asked: list[_Question], events: int) -> float:
    """The very messages of the cursor, and their answers thrown away."""
    began, logs = time.perf_counter(), 0
    for method, each in asked:
        answers = endpoints.run(lambda rpc: rpc.batch(method, each))  # noqa: B023
        # A block that is asked for once more, by its hash, brings nothing new.
        if method == "eth_getLogs" and "fromBlock" in each[0][0]:
            logs += len(answers[0])
    took = time.perf_counter() - began
    if logs != events:
        raise SystemExit(f"the endpoint gave {logs} events, and the cursor {events}")
    return events / took


def _deploy(anvil: Anvil) -> tuple[str, int]:
    owner = anvil.web3.eth.accounts[0]
    start = anvil.web3.eth.block_number + 1

    def create(name: str, *arguments: Any) -> str:
        artifact = load_artifact(name)
        contract = anvil.web3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
        sent = contract.constructor(*arguments).transact({"from": owner, "gas": _GAS})
        return str(anvil.receipt(sent)["contractAddress"])

    params = read_deploy_settings({}).params
    settlement = create("MarketSettlement", create("MarketDisputes"))
    market = create("TrainingMarket", NATIVE_CURRENCY, owner, settlement, params.as_tuple())
    return market, start


def _deposit(anvil: Anvil, market: str, events: int) -> None:
    sender = list(anvil.web3.eth.accounts)[1]
    call = MarketCalls(market).deposit(1, value=1)
    nonce = anvil.nonce(sender)
    for first in range(0, events, _PER_BLOCK):
        anvil.send_in_one_block(
            [
                {
                    "from": sender,
                    "to": market,
                    "data": f"0x{call.data.hex()}",
                    "value": "0x1",
                    "gas": hex(200_000),
                    "nonce": hex(nonce + number),
                }
                for number in range(first, min(first + _PER_BLOCK, events))
            ]
        )


def _wait_for_register(arena: Arena, addresses: list[str]) -> None:
    arena.wait("the register", lambda book: book.workers.keys() >= set(addresses))


def _overhead(arena: Arena, quick: bool) -> list[Figure]:
    took = measure_overhead(arena)
    what = f"from post to settled without the {took.trained:.1f} s of training, s"
    strict = f"the same without the {took.stepped:.1f} s from the first step to the last alone, s"
    return [
        Figure("settle_overhead_s", what, took.all - took.trained, 15.0),
        Figure("settle_overhead_strict_s", strict, took.all - took.stepped, math.inf),
    ]


def _idle(arena: Arena, quick: bool) -> list[Figure]:
    cpu, resident = measure_idle(arena, _QUICK_IDLE_S if quick else _IDLE_S)
    return [
        Figure("idle_cpu_percent", "an agent without a task, percent of a core", cpu, 1.0),
        Figure("idle_rss_mb", "an agent without a task, MB", resident, 200.0),
    ]


def _fleet(arena: Arena, quick: bool) -> list[Figure]:
    agents, tasks = _QUICK_FLEET if quick else _FLEET
    settled, took = measure_fleet(arena, agents, tasks)
    what = f"tasks settled of {tasks}, by {agents} agents in {took:.0f} s, all money there"
    return [Figure("fleet_tasks_settled", what, settled, tasks, at_least=True)]


def _catching_up(quick: bool) -> list[Figure]:
    events = _QUICK_EVENTS if quick else _EVENTS
    pace, ratio = measure_catching_up(events)
    rpc = "catching up ÷ what the endpoint alone gives"
    return [
        Figure(
            "catch_up_events_per_s",
            f"{events} events, a second",
            pace,
            5_000,
            at_least=True,
            either=_CATCHING_UP,
        ),
        Figure("catch_up_over_rpc_ratio", rpc, ratio, 0.8, at_least=True, either=_CATCHING_UP),
    ]


_PARTS = {"overhead": _overhead, "idle": _idle, "fleet": _fleet}
_CATCHING_UP = "catching-up"


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer of all: under three minutes")
    parser.add_argument("--only", choices=[*_PARTS, _CATCHING_UP], help="one part of it")
    given = parser.parse_args()
    names = [given.only] if given.only else [*_PARTS, _CATCHING_UP]
    figures = list[Figure]()
    if _PARTS.keys() & set(names):
        with running_arena(people=_FLEET[0] + _OTHERS) as arena:
            for name in [name for name in _PARTS if name in names]:
                figures += _PARTS[name](arena, given.quick)
    if _CATCHING_UP in names:
        figures += _catching_up(given.quick)
    caption = "of catching up, one of its two figures has to hold"
    sys.exit(report("A market beside its training", figures, caption))


if __name__ == "__main__":
    main()
