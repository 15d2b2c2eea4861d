"""What the market's events mean, one sentence each."""

from collections.abc import Callable, Mapping
from typing import Any

from trainyard.protocol.ledger import Event
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL, DisputeState, Failure, Record

_ETHER = 10**18

Name = Callable[[str], str]


def amount(wei: int) -> str:
    """In the chain's own currency, without zeros that say nothing."""
    text = f"{wei / _ETHER:.6f}".rstrip("0").rstrip(".")
    return f"{text} ETH"


def counted(number: int, what: str) -> str:
    """So many of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def sentence(event: Event, name: Name, *, fully: bool = False) -> str | None:
    """What happened, with people by name; None for what only accounts care about.

    `fully` tells of those too: of all that concerns a task.
    """
    tell = _SENTENCES.get(event.name) or (_DETAILS.get(event.name) if fully else None)
    return None if tell is None else tell(event.args, name)


def task_of(event: Event) -> int | None:
    """The task that an event is about."""
    found = event.args.get("id")
    return None if found is None else int(found)


def _posted(args: Mapping[str, Any], name: Name) -> str:
    terms = args["terms"]
    escrow = terms["reward"] * terms["slots"] + terms["auditFee"] * terms["audits"]
    return (
        f"{name(args['requester'])} posts task {args['id']}: {amount(terms['reward'])} for "
        f"{'each of ' * (terms['slots'] > 1)}{counted(terms['slots'], 'worker')}, "
        f"{counted(terms['audits'], 'audit')}; {amount(escrow)} are locked"
    )


def _seat(args: Mapping[str, Any], name: Name) -> str:
    who = name(args["member"])
    if args["segment"] == OWN_PANEL:
        return f"the draw gives segment {args['duty']} to {who} to audit"
    return f"the draw makes {who} a referee of segment {args['segment']}"


def _challenged(args: Mapping[str, Any], name: Name) -> str:
    who, segment = name(args["accuser"]), args["segment"]
    if args["auditSeat"]:
        return f"{who} found another state than the workers after segment {segment}: a dispute"
    if args["serveBy"]:
        return f"{who} says that the data of segment {segment} is not served: a dispute"
    return f"{who} challenges segment {segment}: a dispute"


def _resolved(args: Mapping[str, Any], name: Name) -> str:
    outcome = {
        DisputeState.UPHELD: "the workers are wrong",
        DisputeState.REJECTED: "the workers are right",
        DisputeState.DISMISSED: "nobody could judge it",
        DisputeState.INCONCLUSIVE: "no majority, everyone is refunded",
        DisputeState.VOID: "the task is over already",
    }[DisputeState(args["outcome"])]
    return f"the dispute about segment {args['segment']} is over: {outcome}"


def _credited(args: Mapping[str, Any], name: Name) -> str:
    if args["account"] == BURN_ADDRESS:
        return f"{amount(args['amount'])} are burned"
    return f"{name(args['account'])} is credited {amount(args['amount'])}"


def _closed(args: Mapping[str, Any], name: Name) -> str:
    lost = f" and loses {amount(args['slashed'])}" if args["slashed"] else ""
    return f"{name(args['member'])} has its bond of {amount(args['bond'])} back{lost}"


def _recorded(args: Mapping[str, Any], name: Name) -> str:
    entry = {
        Record.SETTLED: "a settled task",
        Record.FAILED: "a failed task",
        Record.AUDIT_RIGHT: "a right answer",
        Record.AUDIT_WRONG: "a wrong answer",
    }[Record(args["entry"])]
    return f"{name(args['worker'])} has {entry} on its record"


def _failed(args: Mapping[str, Any], name: Name) -> str:
    why = {
        Failure.NO_QUORUM: "too few workers agreed",
        Failure.FRAUD: "the workers' claim was wrong",
        Failure.WITHHELD: "the workers did not show what they had claimed",
        Failure.INCONCLUSIVE: "nobody could tell who was right",
        Failure.UNAUDITED: "too few auditors were found",
        Failure.BELOW_TARGET: "the score missed its target",
    }[Failure(args["reason"])]
    refund = amount(args["refunded"])
    return f"the task has failed: {why}. The requester gets {refund} back"


_SENTENCES: dict[str, Callable[[Mapping[str, Any], Name], str]] = {
    "TaskPosted": _posted,
    "SlotJoined": lambda a, n: f"{n(a['worker'])} stakes and joins as worker {a['slot']}",
    "SlotLeft": lambda a, n: f"{n(a['worker'])} leaves slot {a['slot']}",
    "SlotPinged": lambda a, n: f"{n(a['by'])} asks slot {a['slot']} for a sign of life",
    "SlotPonged": lambda a, n: f"the worker of slot {a['slot']} is alive",
    "SlotEvicted": lambda a, n: f"{n(a['worker'])} is evicted and loses {amount(a['penalty'])}",
    "TaskStarted": lambda a, n: "all slots are taken: training begins",
    "ClaimCommitted": lambda a, n: f"slot {a['slot']} commits to its claim",
    "ClaimRevealed": lambda a, n: f"slot {a['slot']} reveals its claim",
    "ClaimSubmitted": lambda a, n: (
        f"slot {a['slot']} submits the root {a['claim']['root'].hex()[:16]}… of its trace"
    ),
    "TaskSubmitted": lambda a, n: f"the claim is fixed; block {a['drawBlock']} draws the auditors",
    "SeatDrawn": _seat,
    "SeatsUnassigned": lambda a, n: f"{counted(a['missing'], 'seat')} cannot be filled",
    "AuditCommitted": lambda a, n: f"auditor {a['seat']} commits to what it found, blind",
    "OpeningStarted": lambda a, n: "all answers are in: the workers open the drawn states",
    "WindowStarted": lambda a, n: "the drawn states are open; answers are revealed",
    "AuditRevealed": lambda a, n: f"auditor {a['seat']} reveals {a['answer'].hex()[:16]}…",
    "SegmentChallenged": _challenged,
    "SegmentServed": lambda a, n: f"the workers show the state after segment {a['segment']}",
    "HearingStarted": lambda a, n: (
        f"segment {a['segment']} is recomputed by {counted(a['seats'], 'referee')}"
    ),
    "RefereeCommitted": lambda a, n: f"referee {a['seat']} commits, blind",
    "RefereeRevealed": lambda a, n: f"referee {a['seat']} reveals {a['answer'].hex()[:16]}…",
    "DisputeResolved": _resolved,
    "TaskSettled": lambda a, n: (
        f"the task is settled: {amount(a['paid'])} go to the workers, stakes included, and "
        f"{amount(a['refunded'])} back to the requester"
    ),
    "TaskFailed": _failed,
    "TaskCancelled": lambda a, n: "the task is cancelled, and everyone has everything back",
    "ScoresRevealed": lambda a, n: f"evaluator {a['seat']} reveals {list(a['scores'])}",
}

_DETAILS: dict[str, Callable[[Mapping[str, Any], Name], str]] = {
    "Credited": _credited,
    "Recorded": _recorded,
    "RevealStarted": lambda a, n: "all commitments are in, or the time is over: claims are shown",
    "AuditStarted": lambda a, n: (
        f"{counted(a['seats'], 'drawn member')} of the pool to compute, blind"
    ),
    "SeatsAwaited": lambda a, n: "a drawn member is busy, and is waited for",
    "DrawPostponed": lambda a, n: f"the draw was missed: block {a['drawBlock']} draws instead",
    "SeatClosed": _closed,
    "RefereesCalled": lambda a, n: (
        f"referees for segment {a['segment']} are called; block {a['drawBlock']} draws them"
    ),
    "RulingStarted": lambda a, n: f"the referees of segment {a['segment']} show what they found",
}
