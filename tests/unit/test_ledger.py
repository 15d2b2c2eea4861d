"""The book that is kept from events. The contract tests hold it against what the market stores."""

from inspect import signature

import pytest

from trainyard.chain import load_artifact
from trainyard.protocol.ledger import (
    Book,
    Event,
    UnknownEventError,
    apply,
    panels,
    replay,
    tasks,
    vault,
    workers,
)
from trainyard.protocol.ledger.events import argument_name, python_name
from trainyard.protocol.ledger.replay import HANDLERS

# In the ABI through OpenZeppelin, and never emitted.
NEVER_EMITTED = {"EIP712DomainChanged"}
EVENTS = {
    entry["name"]: [parameter["name"] for parameter in entry["inputs"]]
    for contract in ("ITrainingMarket", "TrainingMarket")
    for entry in load_artifact(contract).abi
    if entry["type"] == "event" and entry["name"] not in NEVER_EMITTED
}


def test_every_event_has_one_handler() -> None:
    """Rule V6: nothing that the market tells is missed."""
    parts = [part.HANDLERS for part in (vault, workers, tasks, panels)]

    assert set(HANDLERS) == set(EVENTS)
    assert len(HANDLERS) == sum(len(part) for part in parts)


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_handler_takes_what_the_event_has(event: str) -> None:
    """Rule V6: by the names of the event's arguments."""
    book, *parameters = signature(HANDLERS[event]).parameters

    assert book == "book"
    assert parameters == [argument_name(name) for name in EVENTS[event]]


@pytest.mark.parametrize(
    ("solidity", "python"),
    [("stake", "stake"), ("minAuditFor", "min_audit_for"), ("id", "id")],
)
def test_fields_are_spelled_as_in_python(solidity: str, python: str) -> None:
    assert python_name(solidity) == python


def test_unknown_event_is_refused() -> None:
    """A book that skips what it does not know would be wrong without saying so."""
    with pytest.raises(UnknownEventError, match="no handler of the event Surprised"):
        replay([Event("Surprised", {})])


def test_money_enters_and_leaves_by_its_events() -> None:
    """Rules V2, V6: what is owed is what came in and did not go out."""
    book = replay(
        [
            Event("Deposited", {"account": "a", "amount": 5}),
            Event("Withdrawn", {"account": "a", "to": "b", "amount": 3}),
        ]
    )

    assert (book.account("a").credit, book.owed) == (2, 2)


def test_last_member_takes_the_place_of_the_one_that_leaves() -> None:
    """Rule W3: a pool has no dead places."""
    book = Book()
    params = dict.fromkeys(
        [
            *("seatBond", "unbondFor", "faultBps", "finderBps", "requesterBps"),
            *("referees", "escalation", "drawDelay", "minWindow"),
        ],
        1,
    )
    apply(book, Event("ParamsSet", {"paramsId": 0, "params": params}))
    for place, who in enumerate(["a", "b", "c"], start=1):
        registered = {"worker": who, "envClass": b"e" * 32, "profile": b"p" * 32}
        apply(book, Event("WorkerRegistered", registered))
        bonded = {"worker": who, "amount": 1, "poolIndex": place, "since": 10}
        apply(book, Event("BondAdded", bonded))

    apply(book, Event("WorkerRetired", {"worker": "a", "unbondsAt": 20}))

    assert book.pool(b"e" * 32) == ["c", "b"]
    assert (book.workers["c"].pool_index, book.workers["a"].pool_index) == (1, 0)


def test_gap_in_the_parameters_is_noticed() -> None:
    """A missed event shows as soon as numbers do not follow each other."""
    with pytest.raises(ValueError, match="parameters 1 after 0 earlier ones"):
        replay([Event("ParamsSet", {"paramsId": 1, "params": {}})])
