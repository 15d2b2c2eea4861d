"""Who has to move next in a task, for every state that a task can be in."""

from typing import Any

import pytest

from trainyard.chain import load_artifact
from trainyard.protocol.commitments import Claim
from trainyard.protocol.explaining import namer, names_of
from trainyard.protocol.holdings import parts_of
from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Account, Dispute, Panel, Seat, Slot, Task
from trainyard.protocol.ledger.replay import HANDLERS
from trainyard.protocol.market import (
    BURN_ADDRESS,
    OWN_PANEL,
    DisputeState,
    Failure,
    Policy,
    SeatState,
    TaskState,
    Terms,
)
from trainyard.protocol.moves import Move, next_move, next_moves
from trainyard.protocol.telling import amount, sentence

REQUESTER, ONE, TWO, JUDGE = ("0x" + letter * 40 for letter in "abcd")
NOW, BY, LATER = 1_000, 1_100, 1_200
CALLS = {
    entry["name"] for entry in load_artifact("ITrainingMarket").abi if entry["type"] == "function"
}


def task(state: TaskState, policy: Policy = Policy.AUDIT, **given: Any) -> Task:
    terms = Terms(
        manifest=b"m" * 32, env_class=b"c" * 32, policy=policy, slots=2, reward=10, stake=5
    )
    claim = Claim.of(b"r" * 32, b"t" * 32)
    slots = [Slot(who, claim=claim, digest=claim.digest) for who in (ONE, TWO)]
    values: dict[str, Any] = {"deadline": BY, "slots": slots, "joined": 3}
    return Task(REQUESTER, 0, terms, state=state, **values | given)


def seated(state: SeatState, **given: Any) -> dict[tuple[int, int], Panel]:
    return {(OWN_PANEL, 0): Panel(seats=[Seat(JUDGE, 2, state)], reveal_by=BY, **given)}


def disputed(state: DisputeState, seat: SeatState | None = None, **panel: Any) -> Task:
    found = task(TaskState.DISPUTED, deadline=0)
    found.disputes[2] = Dispute(JUDGE, BY, state, round=1)
    seats = [] if seat is None else [Seat(JUDGE, 2, seat)]
    found.panels[2, 1] = Panel(seats=seats, **panel)
    return found


# The state, what can be done now, and by whom and until when the first of it.
CASES: dict[str, tuple[Task, list[str], tuple[str, ...], int | None]] = {
    "open": (task(TaskState.OPEN, joined=1), ["join", "cancel", "leave"], (), BY),
    "training": (task(TaskState.RUNNING), ["submit"], (ONE, TWO), BY),
    "one is missing": (task(TaskState.RUNNING, answered=1), ["submit"], (TWO,), BY),
    "all answered": (task(TaskState.RUNNING, answered=3), ["expire"], (), None),
    "evicted": (task(TaskState.RUNNING, joined=1), ["submit", "join"], (ONE,), BY),
    "blind": (task(TaskState.RUNNING, Policy.REPLICATE), ["commit"], (ONE, TWO), BY),
    "hidden": (
        task(TaskState.REVEALING, Policy.REPLICATE, answered=3, revealed=1),
        ["reveal"],
        (TWO,),
        BY,
    ),
    "shown": (
        task(TaskState.REVEALING, Policy.REPLICATE, answered=3, revealed=3),
        ["settle"],
        (),
        None,
    ),
    "contest": (
        task(TaskState.REVEALING, Policy.CONTEST, answered=3, revealed=3),
        ["expire"],
        (),
        None,
    ),
    "drawn soon": (task(TaskState.SUBMITTED), ["draw"], (), None),
    "auditing": (
        task(TaskState.AUDITING, panels=seated(SeatState.DRAWN)),
        ["auditCommit"],
        (JUDGE,),
        BY,
    ),
    "opening": (task(TaskState.OPENING), ["open"], (ONE, TWO), BY),
    "window": (
        task(TaskState.WINDOW, panels=seated(SeatState.COMMITTED), deadline=LATER),
        ["auditReveal", "challenge", "challengeUnserved"],
        (JUDGE,),
        BY,
    ),
    "scores": (
        task(TaskState.WINDOW, Policy.SCORE, panels=seated(SeatState.COMMITTED)),
        ["scoreReveal"],
        (JUDGE,),
        BY,
    ),
    "window is over": (
        task(TaskState.WINDOW, panels=seated(SeatState.REVEALED), deadline=NOW),
        ["settle"],
        (),
        None,
    ),
    "unserved": (disputed(DisputeState.UNSERVED), ["serve"], (ONE, TWO), BY),
    "called": (disputed(DisputeState.CALLED), ["drawReferees"], (), None),
    "hearing": (
        disputed(DisputeState.HEARING, SeatState.DRAWN),
        ["refereeCommit"],
        (JUDGE,),
        BY,
    ),
    "ruling": (
        disputed(DisputeState.RULING, SeatState.COMMITTED),
        ["refereeReveal"],
        (JUDGE,),
        BY,
    ),
    "ruled": (disputed(DisputeState.RULING, SeatState.REVEALED), ["resolve"], (), None),
}


@pytest.mark.parametrize("name", CASES)
def test_task_waits_for_somebody(name: str) -> None:
    found, calls, who, by = CASES[name]
    moves = next_moves(found, NOW, block=5)
    first = next_move(found, NOW, block=5)

    assert [move.call for move in moves if move.is_open(NOW)] == calls
    assert first is not None
    assert (first.call, first.who, first.by) == (calls[0], who, by)


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_waited_for_anyone_can_end_it_later(name: str) -> None:
    """Rule C2, as far as a reader is told of it: no money waits for anybody's goodwill."""
    moves = next_moves(CASES[name][0], LATER, block=5)

    assert any(move.who == () and move.is_open(LATER) for move in moves)
    assert {move.call for move in moves} <= CALLS


def test_silent_worker_has_to_answer_or_can_be_evicted() -> None:
    found = task(TaskState.RUNNING)
    found.slots[1].pong_by = NOW + 10
    move = next_move(found, NOW, block=5)

    assert move == Move((TWO,), "give a sign of life", "pong", by=NOW + 10)
    assert "evict" in [one.call for one in next_moves(found, NOW + 10, 5) if one.is_open(NOW + 10)]


def test_draw_waits_for_its_block_and_for_the_busy() -> None:
    found = task(TaskState.SUBMITTED)
    found.own_panel.draw_block = 9
    assert "once block 9 is there" in next_moves(found, NOW, block=9)[0].what
    assert next_moves(found, NOW, block=10)[0].what == "draw the panel"
    found.own_panel.seed = b"s" * 32
    [move] = next_moves(found, NOW, block=10)
    assert (move.since, "busy" in move.what) == (BY, True)


@pytest.mark.parametrize("state", [TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED])
def test_nobody_has_to_do_anything_for_a_task_that_is_over(state: TaskState) -> None:
    assert next_moves(task(state), NOW, 5) == []
    assert next_move(task(state), NOW, 5) is None


def test_dispute_of_a_task_that_is_over_can_be_voided() -> None:
    found = disputed(DisputeState.HEARING, SeatState.DRAWN)
    found.state, found.failure = TaskState.FAILED, Failure.FRAUD
    assert [move.call for move in next_moves(found, NOW, 5)] == ["resolve"]


def test_each_party_is_told_what_is_held_and_what_it_can_claim() -> None:
    found = task(TaskState.WINDOW)
    book = Book(tasks={1: found}, accounts={ONE: Account(credit=7)})
    drawn = {"segment": OWN_PANEL, "duty": 2, "member": JUDGE, "bond": 30}
    events = [
        Event("SlotJoined", {"id": 1, "worker": ONE, "slot": 0}),
        Event("SlotJoined", {"id": 2, "worker": TWO, "slot": 0}),
        Event("SeatDrawn", {"id": 1, **drawn}),
        Event("Credited", {"id": 1, "account": ONE, "amount": 3}),
    ]
    parts = {part.who: part for part in parts_of(book, 1, events)}

    assert parts.keys() == {REQUESTER, ONE, JUDGE}
    assert parts[REQUESTER].held == found.terms.escrow
    assert (parts[ONE].role, parts[ONE].held, parts[ONE].credited) == ("worker of slot 0", 5, 3)
    assert parts[ONE].claim == "withdraw(to, 7) at any time"
    assert (parts[JUDGE].role, parts[JUDGE].held) == ("auditor of segment 2", 30)
    closed = Event("SeatClosed", {"id": 1, "member": JUDGE, "bond": 30, "slashed": 6})
    parts = {part.who: part for part in parts_of(book, 1, [*events, closed])}
    assert (parts[JUDGE].held, parts[JUDGE].lost) == (0, 6)


def test_what_is_lost_and_what_is_burned_is_said() -> None:
    found = task(TaskState.FAILED)
    book = Book(tasks={1: found}, accounts={BURN_ADDRESS: Account(credit=4)})
    events = [
        Event("SlotJoined", {"id": 1, "worker": ONE, "slot": 0}),
        Event("SlotJoined", {"id": 1, "worker": TWO, "slot": 1}),
        Event("Credited", {"id": 1, "account": TWO, "amount": found.terms.stake}),
        Event("Credited", {"id": 1, "account": BURN_ADDRESS, "amount": 4}),
    ]
    parts = {part.who: part for part in parts_of(book, 1, events)}

    assert (parts[ONE].lost, parts[TWO].lost) == (found.terms.stake, 0)
    assert (parts[BURN_ADDRESS].role, parts[BURN_ADDRESS].claim) == (
        "what is burned",
        "nothing: nobody has the key",
    )
    assert sentence(events[-1], str, fully=True) == f"{amount(4)} are burned"


def test_people_are_named_by_what_they_are() -> None:
    book = Book(tasks={1: task(TaskState.AUDITING, panels=seated(SeatState.DRAWN))})
    name = namer(names_of(book, 1))
    assert [name(who).partition(" (")[0] for who in (REQUESTER, ONE, TWO, JUDGE)] == [
        "the requester",
        "worker 0",
        "worker 1",
        "auditor 0",
    ]
    assert name("0x" + "9" * 40) == "0x999999…"


def test_everything_that_happens_in_a_task_has_a_sentence() -> None:
    """What has an `id` is about a task."""
    about = {
        entry["name"]: {part["name"]: _value(part) for part in entry["inputs"]}
        for entry in load_artifact("ITrainingMarket").abi
        if entry["type"] == "event" and entry["name"] in HANDLERS
    }
    for name, args in about.items():
        if "id" in args:
            told = sentence(Event(name, args), lambda who: who, fully=True)
            assert told, name


def _value(part: dict[str, Any]) -> Any:
    kind = part["type"]
    if kind == "tuple":
        return {one["name"]: _value(one) for one in part["components"]}
    if kind.endswith("[]"):
        return []
    if part["name"] == "outcome":
        return int(DisputeState.UPHELD)
    return b"x" * 32 if kind.startswith("bytes") else ONE if kind == "address" else 0
