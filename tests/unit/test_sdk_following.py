"""A task as its requester sees it, while a chain is behind or refuses."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from eth_account import Account

import tests.quiet_web3  # noqa: F401
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError
from trainyard.chain.keystore import KeystoreError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.sdk import following
from trainyard.sdk.errors import TaskFailedError
from trainyard.sdk.following import Following
from trainyard.sdk.market import Key, KeyFile, Market, Place, PlayKey
from trainyard.sdk.showing import shown

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
        # By the chain's clock it is as late as a test says.
        self.late_s = 0
        self.endpoints = SimpleNamespace(
            run=lambda _: SimpleNamespace(timestamp=DEADLINE + self.late_s)
        )
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
def cursor(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A chain in which nothing happens."""
    quiet = SimpleNamespace(batches=list)
    monkeypatch.setattr(following, "Cursor", lambda *_, **__: quiet)
    return quiet


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


def locked() -> Sending:
    """The key of who posted it asks for a password."""
    found = Sending(0)
    found.is_unlocked = False
    return found


def wrong_password() -> Sending:
    return Sending(1, KeystoreError("wrong password"))


def somebody_elses() -> Sending:
    found = Sending(0)
    found.owner = f"0x{'33' * 20}"
    return found


@pytest.mark.parametrize("given", [locked, wrong_password, somebody_elses])
def test_who_cannot_end_what_nobody_took_says_who_can_and_does_not_wait_for_ever(
    clock: Clock, given: Callable[[], Sending]
) -> None:
    market, said = given(), list[str]()
    with closing(Following(cast(Market, market), 7, say=said.append)) as one:
        # The chain's clock is behind ours: somebody may take it still.
        one.end_what_nobody_took(OPEN)
        assert said == []
        market.late_s, market.refusals = 10, 9
        for _ in range(3):
            clock.now += 6
            one.end_what_nobody_took(OPEN)
        assert said == [
            "nobody took it in time: 'trainyard cancel 7' brings back the money of who posted it"
        ]

        market.late_s, clock.now = 60, clock.now + 6
        with pytest.raises(TaskFailedError, match=r"taken by nobody .*trainyard cancel"):
            one.end_what_nobody_took(OPEN)


def test_a_key_that_opens_without_a_question_is_there_to_end_it(tmp_path: Path) -> None:
    place = Sending(0).place
    place.endpoints = ("http://127.0.0.1:1",)
    key = tmp_path / "key.json"
    play = PlayKey(Account.from_key("11" * 32))
    keys: list[Key | None] = [play, KeyFile(key, tmp_path / "password"), KeyFile(key), None]

    found = [Market(cast(Place, place), one).is_unlocked for one in keys]

    assert found == [True, True, False, False]


def test_a_chain_that_does_not_answer_is_told_once_and_so_is_its_return(
    clock: Clock, cursor: SimpleNamespace
) -> None:
    said: list[str] = []
    answers: Any = EndpointError("http://a", "no answer")

    def batches() -> list[Any]:
        if answers is not None:
            raise answers
        return []

    cursor.batches = batches
    with closing(Following(cast(Market, Sending(0)), 7, say=said.append)) as one:
        for _ in range(30):
            assert one.look() is None
            clock.now += 1
        assert [line[:29] for line in said] == ["the chain does not answer, an"]
        answers = None
        one.look()
        one.look()

    assert said[1:] == ["the chain answers again"]


def test_what_has_to_be_known_is_told_also_where_nobody_looks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with shown("task 7", 1, 0) as show:
        show.say("worker 1 joined")
        show.warn("the chain does not answer")

    assert caplog.messages == ["the chain does not answer"]


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
        closing(Following(cast(Market, Sending(0)), 7, is_seen=False)) as one,
        pytest.raises(TaskFailedError, match="task 7 is not there: the market has 0 tasks"),
    ):
        one.look()
