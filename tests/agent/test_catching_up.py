"""Whoever comes to lead takes over what others have, and is held up by nobody who has nothing."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_engine_round_log import MANIFEST, START, Yard
from trainyard.engine.exchange import Decision, Offer
from trainyard.engine.offers import signed
from worker_agent.runner.carrying import Carrier
from worker_agent.runner.following import Follower, Standing
from worker_agent.runner.leading import Leader


@dataclass
class Other:
    """What the worker of slot 1 says it has, and gives."""

    yard: Yard
    rounds: int
    decisions: dict[int, Decision] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def ask(self, slot: int, kind: str, body: bytes = b"", **_: Any) -> bytes:
        self.asked.append(kind)
        if kind == "standing":
            return Standing(leads=False, rounds=self.rounds, globe=None).model_dump_json().encode()
        found = self.decisions.get(json.loads(body)["round"])
        return b"" if found is None else found.model_dump_json().encode()

    async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
        self.yard.exchange.get(json.loads(body)).save(target)


class Own:
    """Our own worker."""

    restarts = 0

    async def first_state(self) -> str:
        return START.hash.hex()

    def merged(self, number: int) -> None:
        return None

    def restart(self) -> None:
        self.restarts += 1


@dataclass
class Here:
    yard: Yard
    other: Other
    own: Own


class _Live:
    def __init__(self) -> None:
        self.silent: dict[int, float] = {}

    def take(self, event: object) -> None:
        pass


def catch_up(tmp_path: Path, other: Other, ours: Yard | None = None) -> Here:
    yard, own = ours or Yard(tmp_path / "ours"), Own()
    task: Any = type("Task", (), {"live": _Live(), "job": type("Job", (), {"slot": 0})})

    async def run() -> Here:
        plane: Any = other
        worker: Any = own
        carrier = Carrier(plane, MANIFEST, yard.exchange, tmp_path / "desk")
        follower = Follower(task, yard.log, yard.exchange, worker, carrier, plane)
        await Leader(follower, lambda: {0, 1}).catch_up()
        return Here(yard, other, own)

    return asyncio.run(run())


@pytest.fixture
def theirs(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "theirs")


def test_all_that_others_have_is_taken_over(tmp_path: Path, theirs: Yard) -> None:
    decisions = {number: theirs.lead_round(0, 1) for number in range(3)}

    here = catch_up(tmp_path, Other(theirs, 3, decisions))

    assert here.yard.log.is_complete
    assert here.yard.journal.trace.root == theirs.journal.trace.root


@pytest.mark.parametrize("rounds", [2, 3, 10**9])
def test_who_promises_more_than_it_has_is_left(tmp_path: Path, theirs: Yard, rounds: int) -> None:
    here = catch_up(tmp_path, Other(theirs, rounds, {0: theirs.lead_round(0, 1)}))

    assert here.yard.log.round == (0 if rounds == 10**9 else 1)
    assert here.other.asked.count("decision") <= 2


def test_decision_whose_parts_are_wrong_is_taken_back(tmp_path: Path, theirs: Yard) -> None:
    first, second = theirs.offer(1, 1.0), theirs.offer(1, 2.0)
    mixed: Offer = signed(first.model_copy(update={"leaf": second.leaf}), MANIFEST, b"\x02" * 32)
    wrong = Decision(round=0, offers=(theirs.offer(0), mixed), absences=(None, None))

    here = catch_up(tmp_path, Other(theirs, 1, {0: wrong}))

    assert here.yard.log.round == 0
    assert here.yard.log.decided() is None
    assert here.yard.exchange.latest_call() == here.yard.log.call()
    assert here.own.restarts == 1


def test_own_decision_outlives_who_has_nothing(tmp_path: Path, theirs: Yard) -> None:
    ours = Yard(tmp_path / "decided")
    decision = Decision(round=0, offers=(ours.offer(0), ours.offer(1)), absences=(None, None))
    ours.log.agree(decision)

    here = catch_up(tmp_path, Other(theirs, 2), ours)

    assert ours.exchange.decision(0) == decision
    assert here.own.restarts == 0
