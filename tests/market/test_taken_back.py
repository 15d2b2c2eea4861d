"""What an auditor and a worker do when the chain draws anew, and when what they had is lost."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.market.yard import AUDITOR, TRAINER, Market, kill, market
from trainyard.devnet.agents import Agent, start_agent
from trainyard.devnet.options import ETHER
from trainyard.protocol.ledger.book import Seat, Task
from trainyard.protocol.market import SeatState, TaskState

FEE = ETHER // 100
# No draw lies so deep before we say so.
DEPTH = 1000
PATIENT = AUDITOR | {"chain.confirmations": DEPTH}
LONG = {"audit_for": 4 * DEPTH, "answer_for": 600}


@pytest.fixture
def yard() -> Iterator[Market]:
    """One for each test: an auditor stays in the pool, and is drawn when its agent is gone."""
    with market() as one:
        yield one


def _bury(yard: Market) -> None:
    """Let the draw lie deep."""
    yard.devnet.chain.request("anvil_mine", hex(DEPTH))


def _seat(yard: Market, number: int) -> Seat | None:
    task = yard.task(number)
    return None if task is None or not task.own_panel.seats else task.own_panel.seats[0]


def _answered(agent: Agent, number: int) -> int | None:
    """The segment that the agent has an answer to."""
    answers = [*(agent.home / "tasks" / str(number) / "answers").glob("*.json")]
    if not answers:
        return None
    [path] = answers
    return int(json.loads(path.read_text())["about"].rpartition("/")[2])


def test_auditor_answers_for_the_segment_of_the_new_draw(yard: Market) -> None:
    manifest = yard.manifest(segments=8)
    names = worker, auditor = yard.name(), yard.name()
    before = yard.wealth(*names)
    chain = yard.devnet.chain
    with yard.agent(worker, TRAINER) as one, yard.agent(auditor, PATIENT) as other:
        agents = (one, other)
        yard.wait_for_workers(*agents)
        task = yard.post(manifest, audits=1, min_audits=1, **LONG)
        yard.wait_for(task, TaskState.RUNNING, agents=agents)
        known = chain.request("evm_snapshot")
        yard.wait(lambda: _answered(other, task) is not None, *agents)
        first = _answered(other, task)
        while True:
            seat = _seat(yard, task)
            assert seat is not None
            assert seat.state is SeatState.DRAWN
            if seat.segment != first:
                break
            chain.request("evm_revert", known)
            chain.request("anvil_dropAllTransactions")
            known = chain.request("evm_snapshot")
            yard.wait(lambda: _seat(yard, task) is None, *agents)
            yard.wait(lambda: _seat(yard, task) is not None, *agents)
        yard.wait(lambda: _answered(other, task) == seat.segment, *agents)
        _bury(yard)
        settled = yard.settle(task, *agents)
        after = yard.wealth(*names)

    assert _revealed(settled) == seat.segment
    assert settled.disputes == {}
    assert _answered(other, task) == seat.segment
    assert {name: after[name] - before[name] for name in names} == {worker: ETHER, auditor: FEE}


def _revealed(task: Task) -> int:
    [seat] = task.own_panel.seats
    assert task.own_panel.revealed == 1
    assert seat.answer == seat.opened
    return seat.segment


@pytest.mark.long
def test_folders_that_are_lost_after_a_claim_and_an_answer_cost_nothing(yard: Market) -> None:
    """The worker trains once more and opens, the auditor computes once more and reveals."""
    manifest = yard.manifest(segments=4)
    names = worker, auditor = yard.name(), yard.name()
    before = yard.wealth(*names)
    with yard.agent(worker, TRAINER) as one, yard.agent(auditor, PATIENT) as other:
        yard.wait_for_workers(one, other)
        task = yard.post(manifest, audits=1, min_audits=1, **LONG)
        yard.wait(lambda: _answered(other, task) is not None, one, other)
        kill(one)
        _bury(yard)
        yard.wait_for(task, TaskState.OPENING, agents=(other,))
        kill(other)
        for lost in (one, other):
            shutil.rmtree(_folder(lost, task))
    again = [start_agent(yard.devnet, name, {}) for name in names]
    try:
        settled = yard.settle(task, *again)
        after = yard.wealth(*names)
    finally:
        for agent in again:
            agent.stop()

    _revealed(settled)
    assert {name: after[name] - before[name] for name in names} == {worker: ETHER, auditor: FEE}


def _folder(agent: Agent, task: int) -> Path:
    folder = agent.home / "tasks" / str(task)
    assert folder.is_dir()
    return folder
