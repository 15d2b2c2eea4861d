"""Cheats that only a market can be cheated by, each played out on a real chain.

Who is caught does not hang on a draw here: the scenes are set such that the cheat is drawn.
"""

from collections.abc import Callable

from benchmarks.arena import ENDED, MARGIN_S, STAKE, Arena, Player
from trainyard.protocol.market import DisputeState, Failure, Policy, SeatState, TaskState
from trainyard.protocol.trace import Trace
from worker_agent.progress import ANSWERS, TRACE, Shelf
from worker_agent.settings import Home
from worker_agent.situation import TURN_S

_MEMBERS = tuple(f"member-{number}" for number in range(1, 6))
Outcome = dict[str, bool]


def play_scenes(arena: Arena) -> tuple[Outcome, list[Player]]:
    """Whether each cheat paid for it, by its name; and all who were honest."""
    outcome = _collusion(arena)
    _start_members(arena, *_MEMBERS)
    for scene in _SCENES:
        outcome |= scene(arena)
    honest = [one for name, one in arena.players.items() if name.startswith(("member-", "worker-"))]
    return outcome, honest


def _collusion(arena: Arena) -> Outcome:
    """A lazy worker with an auditor of its own, and among the referees one that says nothing.

    Before there are other members: the colluder is the only one that can be drawn.
    """
    requester, challenger, confirming = arena.person(), arena.person(), arena.person()
    lazy = arena.start("lazy", "lazy", takes=[requester.address])
    arena.register(confirming)
    number = arena.post(requester, challenge_for=3600)
    arena.wait_for(number, TaskState.AUDITING)
    colluder = arena.start("colluder", "collude", "--partner", str(lazy.home), account=confirming)
    bond = arena.net.params.seat_bond
    silent = arena.start("silent", "silent", bond=bond)
    _start_members(arena, *_MEMBERS[:2])
    arena.wait_for_members(silent)
    arena.wait(
        "the colluder's word",
        lambda book: book.tasks[number].own_panel.seats[0].state is SeatState.REVEALED,
    )
    task = arena.wait_for(number, TaskState.WINDOW)
    [seat], claim = task.own_panel.seats, task.slots[0].claim
    if claim is None:
        raise SystemExit("the lazy worker claimed nothing")
    segment = seat.segment
    states = _shelf(lazy, number).read(TRACE)["states"]
    trace = Trace([bytes.fromhex(one) for one in states])
    arena.send(challenger, arena.calls.deposit(bond, value=bond))
    accusation = arena.calls.challenge(
        number, segment, claim, trace.after(segment), trace.proof_after(segment)
    )
    arena.send(challenger, accusation)
    arena.wait(
        "two referees",
        lambda book: (
            (segment, 1) in book.tasks[number].panels
            and book.tasks[number].panels[segment, 1].committed == 2
        ),
    )
    arena.advance_to(arena.book().tasks[number].disputes[segment].deadline)
    task = arena.wait_for(number, *ENDED)
    slashed = arena.slashed(number)
    for player in (lazy, colluder, silent):
        player.stop()
    return {
        "collude": task.failure is Failure.FRAUD and slashed.get(colluder.address) == bond,
        "silent": slashed.get(silent.address, 0) > 0,
    }


def _false_challenge(arena: Arena) -> Outcome:
    requester = arena.person()
    arena.start("worker-plain", takes=[requester.address])
    accuser = arena.start("accuser", "false-challenge", takes=[requester.address], trains=False)
    number = arena.post(requester, audits=0, challenge_for=3600)
    arena.wait("a dispute", lambda book: bool(book.tasks[number].disputes))
    judged = (DisputeState.REJECTED, DisputeState.UPHELD)
    book = arena.wait("a verdict", lambda book: book.tasks[number].disputes[0].state in judged)
    arena.advance_to(book.tasks[number].deadline)
    task = arena.wait_for(number, *ENDED)
    accuser.stop()
    is_rejected = task.disputes[0].state is DisputeState.REJECTED
    is_paid = task.state is TaskState.SETTLED
    return {
        "false_challenge": is_rejected and is_paid and accuser.address not in arena.paid(number)
    }


def _withhold(arena: Arena) -> Outcome:
    requester = arena.person()
    cheat = arena.start("withholder", "withhold", takes=[requester.address])
    number = arena.post(requester)
    task = arena.wait_for(number, TaskState.AUDITING)
    [seat] = task.own_panel.seats
    [auditor] = [one for one in arena.players.values() if one.address == seat.member]
    arena.wait("an answer", lambda _: _shelf(auditor, number).path(ANSWERS).exists())
    arena.advance_to(task.deadline - MARGIN_S)
    opening = arena.wait_for(number, TaskState.OPENING)
    # The worker does not even end it; others do, when it is their turn.
    arena.advance_to(opening.deadline + 2 * TURN_S)
    task = arena.wait_for(number, *ENDED)
    cheat.stop()
    is_lost = cheat.address not in arena.paid(number)
    return {"withhold": task.failure is Failure.WITHHELD and is_lost}


def _copy(arena: Arena) -> Outcome:
    """A worker that commits to what another slot has committed to."""
    requester = arena.person()
    for name in ("worker-first", "worker-second"):
        arena.start(name, takes=[requester.address])
    copycat = arena.start("copycat", "copy", takes=[requester.address])
    number = arena.post(
        requester,
        policy=Policy.REPLICATE,
        slots=3,
        quorum=2,
        audits=0,
        audit_fee=0,
        segments=0,
    )
    task = arena.wait_for(number, TaskState.REVEALING)
    arena.wait("two reveals", lambda book: book.tasks[number].revealed.bit_count() == 2)
    arena.wait("a refusal", lambda _: _was_refused(copycat))
    arena.advance_to(task.deadline + 3 * TURN_S)
    task = arena.wait_for(number, *ENDED)
    copycat.stop()
    is_fined = arena.paid(number)[copycat.address] < STAKE
    return {"copy": task.state is TaskState.SETTLED and is_fined}


def _was_refused(copycat: Player) -> bool:
    return any(
        line["event"] == "refused" and "copied-reveal" in line["action"] for line in copycat.said()
    )


def _start_members(arena: Arena, *names: str) -> None:
    bond = 5 * arena.net.params.seat_bond
    missing = [name for name in names if name not in arena.players]
    arena.wait_for_members(*[arena.start(name, bond=bond) for name in missing])


def _shelf(player: Player, number: int) -> Shelf:
    return Shelf(Home(player.home).task(number))


_SCENES: tuple[Callable[[Arena], Outcome], ...] = (_false_challenge, _withhold, _copy)
