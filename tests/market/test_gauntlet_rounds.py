"""Cheats among the workers of a run in rounds: a tampered delta, and a tampered merge.

Each worker is liable for its own leaves: an honest one looks at what others vouch for before it
signs, so that the cheat stands alone behind the claim, and loses its stake alone. Who is paid what
is checked to the wei.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.arena import ENDED, FEE, STAKE, STEPS, Arena, Player, running_arena
from tests.market.leftovers import leaving_nothing
from trainyard.engine.journal import Journal
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import BPS, BURN_ADDRESS, DisputeState, Failure, TaskState
from trainyard.protocol.money import Duty, Part
from trainyard.protocol.trace import Trace
from worker_agent.cheating.plan import Cheat, Plan
from worker_agent.progress import FAILED, RUN, TRACE, WRONG, Shelf
from worker_agent.settings import Home

WORKERS = 2
# Two rounds of two parts and a merge each.
LOCAL_STEPS, ROUNDS = STEPS // 2, 2
MERGES = (2, 5)
LAST_MERGE = ("--fraction", "0.5", "--seed", "0")


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("arena")
    with leaving_nothing(folder), running_arena(folder=folder / "net") as arena:
        bond = 5 * arena.net.params.seat_bond
        members = [arena.start(f"member-{number}", bond=bond) for number in range(3)]
        arena.wait_for_members(*members)
        yield arena


def play(arena: Arena, *cheat: str) -> tuple[int, Player, Player]:
    """A task whose first slot, which leads, is a cheat's, and whose second is not."""
    requester = arena.person()
    number = arena.post(
        requester,
        workers=WORKERS,
        local_steps=LOCAL_STEPS,
        audits=0,
        audit_fee=FEE,
        challenge_for=3600,
    )
    takes, name = [requester.address], f"{cheat[0]}-{number}"
    cheating = arena.start(name, *cheat, takes=takes)
    arena.wait("the cheat's slot", lambda book: bool(book.tasks[number].joined & 1))
    honest = arena.start(f"honest-{number}", takes=takes)
    return number, cheating, honest


def shelf(player: Player, number: int) -> Shelf:
    return Shelf(Home(player.home).task(number))


def states(player: Player, number: int) -> list[str]:
    return [entry.state for entry in Journal.read(shelf(player, number).path(RUN)).entries]


def challenged(arena: Arena, number: int, cheat: Player, segment: int) -> tuple[Task, str]:
    """Have somebody accuse a segment of the cheat's trace, and wait for the end of it."""
    challenger, bond = arena.person(), arena.net.params.seat_bond
    trace = Trace([bytes.fromhex(one) for one in shelf(cheat, number).read(TRACE)["states"]])
    claim = arena.book().tasks[number].slots[0].claim
    assert claim is not None
    arena.send(challenger, arena.calls.deposit(bond, value=bond))
    state, proof = trace.after(segment), trace.proof_after(segment)
    arena.send(challenger, arena.calls.challenge(number, segment, claim, state, proof))
    return arena.wait_for(number, *ENDED), str(challenger.address)


def check_convicted(
    arena: Arena,
    number: int,
    segment: int,
    *,
    slots: dict[str, Part],
    challenger: str,
) -> None:
    """Fraud at that segment, by three referees; everybody has what the model says."""
    task = arena.book().tasks[number]
    assert (task.state, task.failure) == (TaskState.FAILED, Failure.FRAUD)
    [(found, dispute)] = task.disputes.items()
    assert (found, dispute.state) == (segment, DisputeState.UPHELD)
    assert dispute.truth != dispute.claimed
    money = arena.before_end(number)
    referees = {seat.member: Duty.RIGHT for seat in task.panels[segment, 1].seats}
    assert len(referees) == 3
    money.convict(number, slots, {}, finder=challenger, referees=referees)
    money.return_accusation(number, segment, challenger)
    arena.check(number, money)


def check_shares(arena: Arena, number: int, cheat: Player, challenger: str, stakes: int) -> None:
    """The same by hand: one stake is shared out after the referees' fees, any other burns."""
    params, paid, task = arena.net.params, arena.paid(number), arena.book().tasks[number]
    rest = stakes * STAKE - 3 * FEE
    shared = min(rest, STAKE)
    gained, harmed = shared * params.finder_bps // BPS, shared * params.requester_bps // BPS
    assert cheat.address not in paid
    assert paid[challenger] == params.seat_bond + gained
    assert paid[task.requester] == task.terms.escrow + harmed
    assert paid[BURN_ADDRESS] == rest - gained - harmed


def test_a_tampered_delta_is_noticed_by_its_peer_and_costs_its_worker_alone(arena: Arena) -> None:
    """rule P2, rule P3, rule D2, rule D4"""
    number, cheat, honest = play(arena, "delta")
    arena.wait("the cheat's claim", lambda book: book.tasks[number].answered == 1)
    arena.wait("a second look", lambda _: shelf(honest, number).read(WRONG) is not None)
    reason = shelf(honest, number).read(WRONG)["reason"]
    assert "the part of worker 0 in round " in reason
    assert "comes out differently here" in reason
    # The peer has merged what it was sent: both have the same states.
    assert states(honest, number) == states(cheat, number)
    arena.advance_to(arena.book().tasks[number].deadline)
    arena.wait_for(number, TaskState.WINDOW)

    segment = int(reason.split(",")[0].removeprefix("segment "))
    _, challenger = challenged(arena, number, cheat, segment)

    slots = {cheat.address: Part.SIGNED, honest.address: Part.EXCUSED}
    check_convicted(arena, number, segment, slots=slots, challenger=challenger)
    check_shares(arena, number, cheat, challenger, stakes=1)
    assert arena.paid(number)[honest.address] == STAKE
    cheat.stop()
    honest.stop()


@pytest.mark.long
def test_who_signs_for_a_tampered_delta_unseen_loses_with_its_peer(arena: Arena) -> None:
    """rule P3: no more than one stake is shared out, the other one burns."""
    number, cheat, partner = play_with_partner(arena)
    arena.wait_for(number, TaskState.WINDOW)
    assert arena.book().tasks[number].answered == 3

    _, challenger = challenged(arena, number, cheat, segment=0)

    slots = {cheat.address: Part.SIGNED, partner.address: Part.SIGNED}
    check_convicted(arena, number, 0, slots=slots, challenger=challenger)
    check_shares(arena, number, cheat, challenger, stakes=2)
    assert partner.address not in arena.paid(number)
    cheat.stop()
    partner.stop()


def play_with_partner(arena: Arena) -> tuple[int, Player, Player]:
    """The second worker computes as it should, and signs what it has not looked at."""
    requester = arena.person()
    number = arena.post(
        requester, workers=WORKERS, local_steps=LOCAL_STEPS, audits=0, challenge_for=3600
    )
    takes = [requester.address]
    cheat = arena.start(f"delta-{number}", "delta", takes=takes)
    arena.wait("the cheat's slot", lambda book: bool(book.tasks[number].joined & 1))
    return number, cheat, arena.start(f"blind-{number}", takes=takes, self_audits=0)


@pytest.mark.long
def test_a_tampered_last_merge_is_dissented_from_and_costs_who_led(arena: Arena) -> None:
    """rule T8, rule P3: the peer has a trace of its own, which is right to the end."""
    assert Plan(cheat=Cheat.MERGE, fraction=0.5, seed=0).cheated(ROUNDS) == {1}
    number, cheat, honest = play(arena, "merge", *LAST_MERGE)
    task = arena.wait_for(number, TaskState.WINDOW)
    assert task.answered == 3
    assert task.lead == 0
    ours, theirs = states(honest, number), states(cheat, number)
    assert ours[:-1] == theirs[:-1]
    assert ours[-1] != theirs[-1]

    task, challenger = challenged(arena, number, cheat, segment=MERGES[1])

    assert task.disputes[MERGES[1]].truth.hex() == ours[-1]
    slots = {cheat.address: Part.SIGNED, honest.address: Part.DISSENTED}
    check_convicted(arena, number, MERGES[1], slots=slots, challenger=challenger)
    check_shares(arena, number, cheat, challenger, stakes=1)
    assert arena.paid(number)[honest.address] == STAKE
    cheat.stop()
    honest.stop()


@pytest.mark.long
def test_a_tampered_first_merge_is_seen_at_once_and_costs_who_led(arena: Arena) -> None:
    """rule P2, rule P3: the peer goes no further, and the cheat has to go on without it."""
    number, cheat, honest = play(arena, "merge")
    refused = Path(FAILED, "train.json")
    arena.wait("a refusal", lambda _: shelf(honest, number).read(*refused.parts) is not None)
    reason = shelf(honest, number).read(*refused.parts)["reason"]
    assert "worker 0, who leads, came to another state in round 0 by the same parts" in reason
    arena.wait("the cheat's claim", lambda book: book.tasks[number].answered == 1)
    arena.advance_to(arena.book().tasks[number].deadline)
    arena.wait_for(number, TaskState.WINDOW)

    _, challenger = challenged(arena, number, cheat, segment=MERGES[0])

    slots = {cheat.address: Part.SIGNED, honest.address: Part.EXCUSED}
    check_convicted(arena, number, MERGES[0], slots=slots, challenger=challenger)
    check_shares(arena, number, cheat, challenger, stakes=1)
    assert arena.paid(number)[honest.address] == STAKE
    cheat.stop()
    honest.stop()
