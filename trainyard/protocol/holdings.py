"""What each party has in a task: what it holds of them, and what it brought them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL, TaskState
from trainyard.protocol.moves import ENDED, holders

_FIRE = "what is burned"


@dataclass(frozen=True, slots=True)
class Part:
    """What an account has to do with a task, and what the task holds of it or owes it."""

    who: str
    role: str
    # Its stake, escrow or bonds, that the task holds now.
    held: int
    # What the task brought it so far, what was held included.
    credited: int
    # What it lost of that: a stake, a part of one, or bonds.
    lost: int
    # What it can take out of the market now, from wherever that came.
    credit: int
    claim: str


def parts_of(book: Book, number: int, events: Iterable[Event]) -> list[Part]:
    """Everybody who ever had money in a task, from the book and all of the market's events."""
    task, events = book.tasks[number], list(events)
    roles: dict[str, list[str]] = {task.requester: ["requester"]}
    held: dict[str, int] = {}
    credited: dict[str, int] = {}
    lost: dict[str, int] = {}
    for event in events:
        args = event.args
        if args.get("id") != number:
            continue
        if event.name == "SlotJoined":
            roles.setdefault(args["worker"], []).append(f"worker of slot {args['slot']}")
        elif event.name == "SeatDrawn":
            is_own = args["segment"] == OWN_PANEL
            role = f"{'auditor' if is_own else 'referee'} of segment {args['duty']}"
            roles.setdefault(args["member"], []).append(role)
            held[args["member"]] = held.get(args["member"], 0) + args["bond"]
        elif event.name == "SeatClosed":
            held[args["member"]] -= args["bond"]
            lost[args["member"]] = lost.get(args["member"], 0) + args["slashed"]
        elif event.name == "SlotEvicted":
            lost[args["worker"]] = lost.get(args["worker"], 0) + args["penalty"]
        elif event.name == "SegmentChallenged":
            roles.setdefault(args["accuser"], []).append(f"accuser of segment {args['segment']}")
        elif event.name == "Credited":
            who = args["account"]
            credited[who] = credited.get(who, 0) + args["amount"]
            roles.setdefault(who, [_FIRE if who == BURN_ADDRESS else "paid by it"])
    for who, amount in _locked(task):
        held[who] = held.get(who, 0) + amount
    if task.state in (TaskState.SETTLED, TaskState.FAILED):
        for who in holders(task, task.joined):
            lost[who] = lost.get(who, 0) + max(0, task.terms.stake - credited.get(who, 0))
    return [
        _part(
            book,
            who,
            ", ".join(names),
            held=held.get(who, 0),
            credited=credited.get(who, 0),
            lost=lost.get(who, 0),
        )
        for who, names in roles.items()
    ]


def _locked(task: Task) -> Iterator[tuple[str, int]]:
    for dispute in task.disputes.values():
        if dispute.accuser is not None and dispute.bond:
            yield dispute.accuser, dispute.bond
    if task.state in ENDED:
        return
    yield task.requester, task.terms.escrow
    for who in holders(task, task.joined):
        yield who, task.terms.stake


def _part(book: Book, who: str, role: str, *, held: int, credited: int, lost: int) -> Part:
    credit = book.accounts[who].credit if who in book.accounts else 0
    if who == BURN_ADDRESS:
        claim = "nothing: nobody has the key"
    elif credit:
        claim = f"withdraw(to, {credit}) at any time"
    elif held:
        claim = "what the task holds comes back as credit when it ends, unless it is lost"
    else:
        claim = "nothing"
    return Part(who, role, held, credited, lost, credit, claim)
