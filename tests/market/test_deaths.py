"""Agents that are killed at the worst moments and started again: nothing happens twice."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.market.yard import AUDITOR, TRAINER, Market
from trainyard.chain.outbox import Fault
from trainyard.devnet.agents import password_file
from trainyard.devnet.options import ETHER
from trainyard.protocol.market import Policy
from worker_agent.faults import VARIABLE, Moment

# Here all is sent at once and stays in the chain; `tests/chain_layer/test_crashes.py` has the rest.
_NOT_HERE = {one.name for one in Fault if one.name.endswith(("_NOTE", "_START_OVER"))}


def _doomed(deaths: Path) -> Callable[[Path], list[str]]:
    def command(home: Path) -> list[str]:
        module = [sys.executable, "-m", "tests.market.doomed"]
        return [*module, str(deaths), str(home), str(password_file(home))]

    return command


def _once_each(yard: Market, task: int) -> None:
    """No event of a task happened twice: what differs in nothing is the same thing done again."""
    happened = Counter(
        (seen.event.name, *(str(value) for value in seen.event.args.values()))
        for seen in yard.events(task)
    )
    assert [event for event, times in happened.items() if times > 1] == []


def test_worker_and_auditor_that_die_at_every_moment_lose_nothing(
    yard: Market, tmp_path: Path
) -> None:
    """Before and after each line of the journal, each transaction, and each piece of work."""
    manifest = yard.manifest(segments=2)
    worker, auditor = yard.name(), yard.name()
    deaths = {name: tmp_path / name for name in (worker, auditor)}
    before = yard.wealth(worker, auditor, "requester")
    with (
        yard.agent(worker, TRAINER, command=_doomed(deaths[worker])) as one,
        yard.agent(auditor, AUDITOR, command=_doomed(deaths[auditor])) as other,
    ):
        yard.wait_for_workers(one, other)
        task = yard.post(manifest, audits=1, min_audits=1)
        yard.settle(task, one, other)
        after = yard.wealth(worker, auditor, "requester")

    assert {name: after[name] - before[name] for name in after} == {
        worker: ETHER,
        auditor: ETHER // 100,
        "requester": -ETHER - ETHER // 100,
    }
    _once_each(yard, task)
    for name in (worker, auditor):
        died_at = deaths[name].read_text().split("\n")[:-1]
        sent = {line for line in died_at if line.split()[0] == "AFTER_SEND"}
        # Each nonce was used once, and it died after each sending but perhaps the last.
        assert 0 <= yard.nonce(name) - len(sent) <= 1
        reached = {line.split()[0] for line in died_at}
        wanted = {one.name for one in (*Fault, *Moment)} - _NOT_HERE
        if name == auditor:
            # It joins nothing, and answers before its work has quite ended.
            wanted -= {"BEFORE_CARD", "AFTER_CARD", "AFTER_WORK"}
        assert wanted <= reached


@pytest.mark.long
def test_agent_by_the_command_dies_where_its_environment_says_and_goes_on(yard: Market) -> None:
    manifest = yard.manifest(segments=2)
    worker = yard.name()
    before = yard.wealth(worker)
    task = yard.post(manifest, policy=Policy.REPLICATE, segments=0)
    for moment in (Fault.AFTER_JOURNAL, Moment.AFTER_CARD, Moment.AFTER_WORK):
        with yard.agent(worker, TRAINER, environment={VARIABLE: moment.name}) as agent:
            yard.wait(agent.child.ended.is_set)
            assert agent.child.process.returncode == -9, agent.child.epitaph()
    with yard.agent(worker, TRAINER) as agent:
        yard.settle(task, agent)
        after = yard.wealth(worker)

    assert after[worker] - before[worker] == ETHER
    _once_each(yard, task)
