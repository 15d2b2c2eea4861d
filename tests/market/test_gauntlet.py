"""Every way to cheat that we know, against honest agents on a real chain: who is caught, what it
costs, and who gets it, to the wei.

One market for all of it; cheats among the workers of a run in rounds are in
`test_gauntlet_rounds.py`. The pool grows from test to test, so that it is certain and not a matter
of luck who is drawn: what a cheat in the pool loses takes it out again.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.arena import ENDED, FEE, MARGIN_S, STAKE, Arena, Player, running_arena
from tests.market.leftovers import leaving_nothing
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import (
    BPS,
    BURN_ADDRESS,
    OWN_PANEL,
    DisputeState,
    Failure,
    Policy,
    SeatState,
    TaskState,
)
from trainyard.protocol.money import Duty, Money, Part
from trainyard.protocol.trace import Trace
from worker_agent.progress import ANSWERS, TRACE, WRONG, Shelf
from worker_agent.settings import Home

OWN = (OWN_PANEL, 0)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("arena")
    with leaving_nothing(folder), running_arena(folder=folder / "net") as arena:
        yield arena


@pytest.fixture(scope="module")
def people(arena: Arena) -> dict[str, Any]:
    """Requesters, and the honest workers that take tasks of theirs."""
    found: dict[str, Any] = {name: arena.person() for name in ("plain", "joint", "replicated")}
    takes = [one.address for one in found.values()]
    found["first"] = arena.start("worker-1", takes=takes)
    found["second"] = arena.start("worker-2", takes=[found["replicated"].address])
    return found


def members(task: Task, place: tuple[int, int] = OWN) -> list[str]:
    return [seat.member for seat in task.panels[place].seats]


def shelf(player: Player, number: int) -> Shelf:
    return Shelf(Home(player.home).task(number))


def convicted(
    arena: Arena, number: int, cheat: Player, *, excused: Player | None = None
) -> tuple[Task, Money]:
    """A task that failed for fraud, found by its one auditor and judged by three referees."""
    task = arena.wait_for(number, *ENDED)
    assert (task.state, task.failure) == (TaskState.FAILED, Failure.FRAUD)
    [(segment, dispute)] = task.disputes.items()
    [auditor] = members(task)
    assert (dispute.state, dispute.accuser) == (DisputeState.UPHELD, auditor)
    assert dispute.truth != dispute.claimed
    money = arena.before_end(number)
    slots = {cheat.address: Part.SIGNED}
    if excused is not None:
        slots[excused.address] = Part.EXCUSED
    referees = dict.fromkeys(members(task, (segment, 1)), Duty.RIGHT)
    assert len(referees) == 3
    money.convict(number, slots, {auditor: Duty.RIGHT}, finder=auditor, referees=referees)
    return task, money


def start_members(arena: Arena, *names: str) -> None:
    """Start honest members, but for those that are there already."""
    bond = 5 * arena.net.params.seat_bond
    missing = [name for name in names if name not in arena.players]
    arena.wait_for_members(*[arena.start(name, bond=bond) for name in missing])


# Before there are honest members


def test_a_colluding_auditor_falls_with_its_worker_and_a_silent_referee_pays(
    arena: Arena,
) -> None:
    """rule A8, rule D2, rule D4, rule P3, rule P4"""
    requester, challenger, silent = arena.person(), arena.person(), arena.person()
    cheat = arena.start("lazy", "lazy", takes=[requester.address])
    confirming = arena.person()
    arena.register(confirming)
    number = arena.post(requester, challenge_for=3600)
    arena.wait_for(number, TaskState.AUDITING)
    partner = ("collude", "--partner", str(cheat.home))
    colluder = arena.start("colluder", *partner, account=confirming)
    bond = arena.net.params.seat_bond
    arena.start("silent", "silent", account=silent, bond=bond)
    start_members(arena, "member-1", "member-2")
    arena.wait_for_members(arena.players["silent"])
    arena.wait(
        "the colluder's word",
        lambda book: book.tasks[number].own_panel.seats[0].state is SeatState.REVEALED,
    )
    task = arena.wait_for(number, TaskState.WINDOW)
    [seat] = task.own_panel.seats
    assert (seat.member, seat.answer) == (colluder.address, seat.opened)

    trace = Trace([bytes.fromhex(one) for one in shelf(cheat, number).read(TRACE)["states"]])
    claim, segment = task.slots[0].claim, seat.segment
    assert claim is not None
    arena.send(challenger, arena.calls.deposit(bond, value=bond))
    proof = trace.proof_after(segment)
    state = trace.after(segment)
    arena.send(challenger, arena.calls.challenge(number, segment, claim, state, proof))
    arena.wait(
        "two referees",
        lambda book: (
            (segment, 1) in book.tasks[number].panels
            and book.tasks[number].panels[segment, 1].committed == 2
        ),
    )
    arena.advance_to(arena.book().tasks[number].disputes[segment].deadline)
    task = arena.wait_for(number, *ENDED)

    assert task.failure is Failure.FRAUD
    money = arena.before_end(number)
    referees = dict.fromkeys(members(task, (segment, 1)), Duty.RIGHT)
    referees[silent.address] = Duty.SILENT
    assert len(referees) == 3
    money.convict(
        number,
        {cheat.address: Part.SIGNED},
        {colluder.address: Duty.WRONG},
        finder=challenger.address,
        referees=referees,
    )
    money.return_accusation(number, segment, challenger.address)
    arena.check(number, money)
    gained = (STAKE - 2 * FEE) * arena.net.params.finder_bps // BPS
    assert arena.paid(number)[challenger.address] == bond + gained
    assert arena.slashed(number)[colluder.address] == bond
    for name in ("colluder", "silent", "lazy"):
        arena.players[name].stop()


def test_an_auditor_that_copies_a_commitment_cannot_reveal_it(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule A6, rule A8"""
    bond = arena.net.params.seat_bond
    copier = arena.start("copier", "copy", bond=bond)
    arena.wait_for_members(copier)
    number = arena.post(people["plain"], audits=3)
    arena.wait_for(number, TaskState.WINDOW)
    arena.wait("two answers", lambda book: book.tasks[number].own_panel.revealed == 2)
    arena.advance_to(arena.book().tasks[number].own_panel.reveal_by)
    task = arena.wait_for(number, *ENDED)

    assert task.state is TaskState.SETTLED
    money = arena.before_end(number)
    seats = dict.fromkeys(members(task), Duty.RIGHT) | {copier.address: Duty.WRONG}
    money.settle(number, {people["first"].address: Part.SIGNED}, seats)
    arena.check(number, money)
    assert arena.slashed(number)[copier.address] == bond
    copier.stop()


@pytest.mark.long
def test_an_auditor_that_repeats_what_it_was_shown_pays_for_the_dispute(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule D1, rule D4"""
    guessing = arena.person()
    arena.register(guessing)
    number = arena.post(people["plain"], audits=3)
    arena.wait_for(number, TaskState.AUDITING)
    # All who are there are auditors of it, so the referees have to come yet.
    start_members(arena, "member-3", "member-4", "member-5")
    guesser = arena.start("guesser", "guess", account=guessing)
    task = arena.wait_for(number, *ENDED)

    assert task.state is TaskState.SETTLED
    [(segment, dispute)] = task.disputes.items()
    assert (dispute.state, dispute.accuser) == (DisputeState.REJECTED, guesser.address)
    money = arena.before_end(number)
    referees = dict.fromkeys(members(task, (segment, 1)), Duty.RIGHT)
    worker = people["first"].address
    money.reject(number, segment, guesser.address, referees, accused=worker)
    seats = dict.fromkeys(members(task), Duty.RIGHT)
    del seats[guesser.address]
    money.settle(number, {worker: Part.SIGNED}, seats)
    arena.check(number, money)
    rest = arena.net.params.seat_bond - 3 * FEE
    earned = rest * arena.net.params.finder_bps // BPS
    assert arena.paid(number)[worker] == 2 * STAKE + earned
    guesser.stop()


# With five honest members


@pytest.fixture(scope="module")
def pool(arena: Arena) -> None:
    start_members(arena, *(f"member-{number}" for number in range(1, 6)))


@pytest.mark.usefixtures("pool")
def test_a_false_accusation_of_any_segment_pays_the_accused(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule D2, rule D4: no auditor was drawn, so nothing was served before the accusation."""
    known = [people["plain"].address]
    accuser = arena.start("accuser", "false-challenge", takes=known, trains=False)
    number = arena.post(people["plain"], audits=0, challenge_for=3600)
    arena.wait("a dispute", lambda book: bool(book.tasks[number].disputes))
    task = arena.wait(
        "a verdict",
        lambda book: (
            book.tasks[number].disputes[0].state in (DisputeState.REJECTED, DisputeState.UPHELD)
        ),
    ).tasks[number]
    assert task.disputes[0].state is DisputeState.REJECTED
    arena.advance_to(task.deadline)
    task = arena.wait_for(number, *ENDED)

    assert task.state is TaskState.SETTLED
    money = arena.before_end(number)
    worker = people["first"].address
    referees = dict.fromkeys(members(task, (0, 1)), Duty.RIGHT)
    money.reject(number, 0, accuser.address, referees, accused=worker)
    money.settle(number, {worker: Part.SIGNED}, {})
    arena.check(number, money)
    assert accuser.address not in arena.paid(number)
    accuser.stop()


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("how", "predicts"),
    [
        # Weights that look like weights, and were never trained.
        pytest.param(("lazy",), False, id="lazy"),
        # Caught in the same way; that they change what they should is shown by the engine's tests.
        pytest.param(("skip",), False, id="skip", marks=pytest.mark.long),
        pytest.param(("lr",), False, id="lr", marks=pytest.mark.long),
        pytest.param(("garbage",), False, id="garbage", marks=pytest.mark.long),
        pytest.param(("skip", "--done", "0.5"), False, id="half", marks=pytest.mark.long),
        pytest.param(("data",), False, id="data", marks=pytest.mark.long),
        pytest.param(("order",), False, id="order", marks=pytest.mark.long),
        pytest.param(("lazy",), True, id="predictions", marks=pytest.mark.long),
    ],
)
def test_work_that_was_not_done_costs_the_stake(
    arena: Arena, how: tuple[str, ...], predicts: bool
) -> None:
    """rule D1, rule D4, rule P3"""
    requester = arena.person()
    cheat = arena.start(f"cheat{len(arena.players)}", *how, takes=[requester.address])
    number = arena.post(requester, predicts=predicts)
    task, money = convicted(arena, number, cheat)
    arena.check(number, money)
    paid = arena.paid(number)
    shared, params = STAKE - 3 * FEE, arena.net.params
    [auditor] = members(task)
    found, harmed = shared * params.finder_bps // BPS, shared * params.requester_bps // BPS
    assert cheat.address not in paid
    assert paid[auditor] == FEE + found
    assert paid[task.requester] == task.terms.escrow - FEE + harmed
    assert paid[BURN_ADDRESS] == shared - found - harmed
    cheat.stop()


@pytest.mark.usefixtures("pool")
def test_who_withholds_what_was_drawn_loses_as_if_caught(arena: Arena) -> None:
    """rule A7, rule P3"""
    requester = arena.person()
    cheat = arena.start("withholder", "withhold", takes=[requester.address])
    number = arena.post(requester)
    task = arena.wait_for(number, TaskState.AUDITING)
    [auditor] = members(task)
    [player] = [one for one in arena.players.values() if one.address == auditor]
    arena.wait("an answer", lambda _: shelf(player, number).path(ANSWERS).exists())
    arena.advance_to(task.deadline - MARGIN_S)
    opening = arena.wait_for(number, TaskState.OPENING)
    # The worker does not even end it; others do, when it is their turn.
    arena.advance_to(opening.deadline + 2 * 20)
    task = arena.wait_for(number, *ENDED)

    assert task.failure is Failure.WITHHELD
    money = arena.before_end(number)
    money.convict(number, {cheat.address: Part.SIGNED}, {auditor: Duty.RIGHT})
    arena.check(number, money)
    assert arena.paid(number)[auditor] == FEE
    cheat.stop()


@pytest.mark.long
@pytest.mark.usefixtures("pool")
def test_garbage_among_workers_is_noticed_before_it_is_signed_for(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule P2, rule P3: whoever noticed is not at fault for having no answer."""
    honest: Player = people["first"]
    cheat = arena.start("spoiler", "garbage", takes=[people["joint"].address])
    number = arena.post(people["joint"], workers=2)
    arena.wait("the spoiler's claim", lambda book: book.tasks[number].answered != 0)
    arena.wait("a second look", lambda _: shelf(honest, number).read(WRONG) is not None)
    assert "comes out differently here" in shelf(honest, number).read(WRONG)["reason"]
    arena.advance_to(arena.book().tasks[number].deadline)

    _, money = convicted(arena, number, cheat, excused=honest)
    arena.check(number, money)
    assert arena.paid(number)[honest.address] == STAKE
    cheat.stop()


@pytest.mark.usefixtures("pool")
def test_what_no_audit_looks_at_is_challenged_by_the_worker_who_noticed(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule D2, rule D4, rule P3: the dissenter gets its stake, its bond and the finder's part."""
    honest: Player = people["first"]
    cheat = arena.start("unseen", "garbage", takes=[people["joint"].address])
    number = arena.post(
        people["joint"], workers=2, audits=0, min_audits=0, audit_fee=FEE, challenge_for=3600
    )
    arena.wait("the cheat's claim", lambda book: book.tasks[number].answered != 0)
    arena.wait("a second look", lambda _: shelf(honest, number).progress().wrong is not None)
    arena.advance_to(arena.book().tasks[number].deadline)
    task = arena.wait_for(number, *ENDED)

    assert (task.state, task.failure) == (TaskState.FAILED, Failure.FRAUD)
    [(segment, dispute)] = task.disputes.items()
    assert (dispute.state, dispute.accuser) == (DisputeState.UPHELD, honest.address)
    money = arena.before_end(number)
    referees = dict.fromkeys(members(task, (segment, 1)), Duty.RIGHT)
    assert len(referees) == 3
    slots = {cheat.address: Part.SIGNED, honest.address: Part.EXCUSED}
    money.convict(number, slots, {}, finder=honest.address, referees=referees)
    money.return_accusation(number, segment, honest.address)
    arena.check(number, money)
    assert arena.paid(number)[honest.address] > STAKE + arena.net.params.seat_bond
    cheat.stop()


def test_a_worker_that_copies_a_commitment_cannot_reveal_it(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule T6, rule T9, rule P2"""
    copycat = arena.start("copycat", "copy", takes=[people["replicated"].address])
    number = arena.post(
        people["replicated"],
        policy=Policy.REPLICATE,
        slots=3,
        quorum=2,
        audits=0,
        audit_fee=0,
        segments=0,
    )
    task = arena.wait_for(number, TaskState.REVEALING)
    arena.wait("two reveals", lambda book: book.tasks[number].revealed.bit_count() == 2)
    arena.wait(
        "a refusal",
        lambda _: any(
            line["event"] == "refused" and "copied-reveal" in line["action"]
            for line in copycat.said()
        ),
    )
    arena.advance_to(task.deadline + 3 * 20)
    task = arena.wait_for(number, *ENDED)

    assert task.state is TaskState.SETTLED
    money = arena.before_end(number)
    parts = {people[name].address: Part.SIGNED for name in ("first", "second")}
    money.settle(number, parts | {copycat.address: Part.ABSENT}, {})
    arena.check(number, money)
    fault = STAKE * arena.net.params.fault_bps // BPS
    assert arena.paid(number)[copycat.address] == STAKE - fault
    copycat.stop()


def test_nobody_honest_was_slashed_and_nothing_is_left_behind(
    arena: Arena, people: dict[str, Any]
) -> None:
    """rule V5"""
    book = arena.book()
    honest = [people["first"], people["second"]]
    honest += [player for name, player in arena.players.items() if name.startswith("member-")]
    for player in honest:
        account, worker = book.account(player.address), book.workers[player.address]
        assert (account.failed, account.audits_wrong) == (0, 0)
        assert (worker.bond_locked, worker.bond) in ((0, 0), (0, 5 * arena.net.params.seat_bond))
    assert all(task.locked == 0 and task.state in ENDED for task in book.tasks.values())
