"""A task as its requester sees it, while a chain is behind or refuses."""

from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.sdk import following
from trainyard.sdk.errors import TaskFailedError
from trainyard.sdk.following import Following
from trainyard.sdk.market import Market

OWNER = f"0x{'11' * 20}"
DEADLINE = 1_000
OPEN = cast(Task, SimpleNamespace(requester=OWNER, state=TaskState.OPEN, deadline=DEADLINE))


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = float(DEADLINE + 10)

    def time(self) -> float:
        return self.now

    monotonic = time


class Sending:
    """A requester's market that refuses so many times, or does not answer."""

    def __init__(self, refusals: int, why: Exception | None = None) -> None:
        self.place = SimpleNamespace(chain_id=1, market=f"0x{'22' * 20}", start_block=0, page=None)
        self.endpoints = None
        self.is_unlocked, self.owner = True, OWNER
        self.calls = SimpleNamespace(expire=lambda number: number)
        self.refusals, self.sent = refusals, 0
        self.why = why or RevertedError("too early")

    def send(self, what: str, call: Any) -> None:
        self.sent += 1
        if self.sent <= self.refusals:
            raise self.why


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(following, "time", found)
    return found


@pytest.fixture(autouse=True)
def cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain in which nothing happens."""
    silent = SimpleNamespace(batches=list)
    monkeypatch.setattr(following, "Cursor", lambda *_, **__: silent)


@pytest.mark.parametrize(
    "why",
    [RevertedError("too early"), EndpointError("http://a", "no answer"), NoEndpointError([], 1.0)],
    ids=["refused", "no answer", "nobody"],
)
def test_what_nobody_took_is_ended_again_until_the_chain_takes_it(
    clock: Clock, why: Exception
) -> None:
    market = Sending(refusals=2, why=why)
    with closing(Following(cast(Market, market), 7)) as one:
        for _ in range(30):
            one.end_what_nobody_took(OPEN)
            clock.now += 1

    # Every few seconds while it is refused, and never once it is done.
    assert market.sent == 3


def test_a_task_that_was_posted_is_waited_for_where_a_node_is_behind(clock: Clock) -> None:
    with closing(Following(cast(Market, Sending(0)), 7)) as one:
        assert one.look() is None
        clock.now += 59
        assert one.look() is None
        clock.now += 2

        with pytest.raises(TaskFailedError, match="task 7 is not there"):
            one.look()


def test_a_number_that_somebody_typed_is_told_at_once(clock: Clock) -> None:
    with (
        closing(Following(cast(Market, Sending(0)), 7, is_known=False)) as one,
        pytest.raises(TaskFailedError, match="task 7 is not there: the market has 0 tasks"),
    ):
        one.look()
