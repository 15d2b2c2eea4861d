"""A task explained from what the chain tells: what happened, who moves next, and who has what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainyard.protocol.holdings import parts_of
from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.market import TaskState
from trainyard.protocol.moves import next_move, next_moves
from trainyard.protocol.telling import sentence, task_of


@dataclass(frozen=True, slots=True)
class Told:
    """An event with its place: the block, its time, and the transaction."""

    event: Event
    block: int
    time: int
    transaction: bytes


def names_of(book: Book, number: int) -> Mapping[str, str]:
    """Names for those who appear in a task, by what they were in it first."""
    task = book.tasks[number]
    names = {task.requester: "the requester"}
    for index, slot in enumerate(task.slots):
        if slot.worker is not None:
            names.setdefault(slot.worker, f"worker {index}")
    # Auditors before referees: who was both is known by what it was first.
    for (_, round_), panel in sorted(task.panels.items(), key=lambda one: one[0][::-1]):
        for index, seat in enumerate(panel.seats):
            what = f"referee {index}" if round_ else f"auditor {index}"
            names.setdefault(seat.member, what)
    return names


def explain(
    book: Book, number: int, events: Sequence[Told], now: int, block: int
) -> dict[str, Any]:
    """All about one task; `events` are all of the market's, or at least all of this task's."""
    task, names = book.tasks[number], names_of(book, number)
    name = namer(names)
    mine = [one for one in events if task_of(one.event) == number]
    move = next_move(task, now, block)
    return {
        "task": number,
        "state": task.state.name.lower(),
        "failure": None if task.failure is None else task.failure.name.lower(),
        "policy": task.terms.policy.name.lower(),
        "requester": task.requester,
        "manifest": task.terms.manifest.hex(),
        "env_class": task.terms.env_class.hex(),
        "deadline": task.deadline,
        "now": now,
        "names": dict(names),
        "history": [
            {
                "block": one.block,
                "time": one.time,
                "transaction": f"0x{one.transaction.hex()}",
                "event": one.event.name,
                "what": what,
            }
            for one in mine
            if (what := sentence(one.event, name, fully=True)) is not None
        ],
        "next": None if move is None else asdict(move),
        "moves": [asdict(one) for one in next_moves(task, now, block)],
        "parties": [asdict(one) for one in parts_of(book, number, [one.event for one in mine])],
    }


def namer(names: Mapping[str, str]) -> Callable[[str], str]:
    """A person's name, with its address in short; strangers are shown by that alone."""

    def name(who: str) -> str:
        short = f"{who[:8]}…"
        return f"{names[who]} ({short})" if who in names else short

    return name


def is_over(document: Mapping[str, Any]) -> bool:
    return document["state"] in {
        state.name.lower() for state in (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
    }
