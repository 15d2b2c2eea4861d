"""What the demo shows of a task while it goes on comes from the task as it is."""

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from eth_account import Account
from rich.console import Console

import tests.quiet_web3  # noqa: F401
from tests.agent.books import (
    ME,
    MEMBER,
    NOW,
    PEER,
    REQUESTER,
    STAKE,
    seated,
    situation,
    task,
    terms,
)
from trainyard.demo.reporting import receipt_lines
from trainyard.demo.stage import picture
from trainyard.protocol.ledger import Event
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import SeatState, TaskState
from trainyard.sdk.receipts import receipt_of

NAMES = {ME: "Walt", PEER: "Wanda", MEMBER: "Ada", REQUESTER: "Rita"}
JOINED = [
    Event("SlotJoined", {"id": 1, "worker": who, "slot": slot})
    for slot, who in enumerate((ME, PEER))
]


def shown(found: Task, events: Sequence[Event] = (), now: int = NOW) -> str:
    console = Console(file=StringIO(), width=160)
    book = situation(found).book
    console.print(picture(book, 1, events, {}, NAMES.__getitem__, now=now, block=100))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("found", "move"),
    [
        (replace(task(TaskState.OPEN, ()), joined=0), "next: anyone: take a free slot, 500 s left"),
        (task(TaskState.RUNNING, (ME, PEER)), "next: Walt and Wanda: submit its claim"),
        # Who has answered is not waited for.
        (task(TaskState.RUNNING, (ME, PEER), answered=1), "next: Wanda: submit its claim"),
        (
            seated(task(TaskState.AUDITING), MEMBER, SeatState.DRAWN),
            "next: Ada: commit to what it found, blind",
        ),
        (
            seated(task(TaskState.WINDOW), MEMBER, SeatState.REVEALED),
            "next: anyone: pay everyone in 500 s",
        ),
        (task(TaskState.SETTLED), "next: nobody: it is settled"),
    ],
)
def test_who_has_to_move_is_named(found: Task, move: str) -> None:
    assert move in shown(found)


def test_whose_money_the_task_holds_is_shown() -> None:
    held = shown(
        task(TaskState.RUNNING, (ME, PEER), terms=terms(slots=2, reward=3 * STAKE)), JOINED
    )
    rows = [line.split() for line in held.splitlines() if "held" in line]
    assert [(row[0], row[-3:]) for row in rows] == [
        ("Rita", ["6.01", "ETH", "held"]),
        ("Walt", ["1", "ETH", "held"]),
        ("Wanda", ["1", "ETH", "held"]),
    ]


def test_receipt_says_where_it_is_who_signed_it_and_what_it_states() -> None:
    book = situation(task(TaskState.SETTLED, (ME, PEER))).book
    key = Account.create()
    receipt = receipt_of((), book, 1, chain_id=1337, market="0x" + "99" * 20, start_block=1)
    named = {**NAMES, key.address: "Rita"}.__getitem__

    told = "\n".join(receipt_lines(receipt.signed(key), Path("here.json"), named))
    assert told.startswith(f"The receipt is in here.json, signed by Rita ({key.address}).")
    assert "task 1 of" in told
    assert "settled" in told
    assert "signed by nobody" in receipt_lines(receipt, Path("here.json"), named)[0]
