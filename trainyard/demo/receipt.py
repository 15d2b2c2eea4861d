"""What was trained, checked and paid, as the chain tells it."""

from collections.abc import Sequence
from typing import Any

from trainyard.chain.cursor import Seen
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.telling import task_of


def receipt_of(
    seen: Sequence[Seen], book: Book, number: int, market: str, chain_id: int
) -> dict[str, Any]:
    """All of it can be checked again with the transactions that it names."""
    task = book.tasks[number]
    lead = task.slots[task.lead].claim
    return {
        "version": 1,
        "chain_id": chain_id,
        "market": market,
        "task": number,
        "requester": task.requester,
        "outcome": task.state.name.lower(),
        "failure": None if task.failure is None else task.failure.name.lower(),
        "manifest": task.terms.manifest.hex(),
        "class": task.terms.env_class.hex(),
        "result": None if lead is None else lead.result.hex(),
        "root": None if lead is None else lead.root.hex(),
        "workers": [slot.worker for slot in task.slots],
        "audits": [
            {
                "segment": seat.segment,
                "member": seat.member,
                "answer": seat.answer.hex(),
                "opened": seat.opened.hex(),
            }
            for seat in task.own_panel.seats
        ],
        "disputes": {
            str(segment): {"outcome": one.state.name.lower(), "truth": one.truth.hex()}
            for segment, one in task.disputes.items()
        },
        "credited": _credited(seen, number),
        "transactions": sorted(
            {f"0x{one.transaction.hex()}" for one in seen if task_of(one.event) == number}
        ),
    }


def _credited(seen: Sequence[Seen], number: int) -> dict[str, int]:
    """What the task brought to each account, stakes included."""
    found: dict[str, int] = {}
    for one in seen:
        args = one.event.args
        if one.event.name == "Credited" and task_of(one.event) == number:
            found[args["account"]] = found.get(args["account"], 0) + args["amount"]
    return found
