"""Whole lives of tasks and workers, each with the events that it is there for."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from brownie import TrainingMarket, chain

from tests.contracts.yard import AUDITOR_BOND, ETHER, FEE, PARAMS, STAKE, Yard, digest, trace_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import UNSERVED, Policy

OTHER_CLAIM = Claim.of(digest("other result"), trace_of("other").root)
WRONG = digest("wrong")


@dataclass(frozen=True)
class Life:
    run: Callable[[Yard], None]
    tells: frozenset[str]

    @property
    def name(self) -> str:
        return self.run.__name__


LIVES: list[Life] = []


def telling(*events: str) -> Callable[[Callable[[Yard], None]], Callable[[Yard], None]]:
    def add(run: Callable[[Yard], None]) -> Callable[[Yard], None]:
        LIVES.append(Life(run, frozenset(events)))
        return run

    return add


# The market and its workers


@telling(
    "WorkerRegistered", "ProfileChanged", "BondAdded", "DutySet", "WorkerRetired", "BondReturned"
)
def worker_comes_goes_and_is_replaced(yard: Yard) -> None:
    leaver, newcomer = yard.auditors[3], yard.stranger
    yard.market.setProfile(digest("new profile"), {"from": leaver})
    yard.market.addBond(AUDITOR_BOND, {"from": leaver})
    yard.market.setDuty(FEE, 60, 30, {"from": leaver})
    yard.market.retire({"from": leaver})
    yard.market.register(digest("p"), digest("class of its own"), 0, {"from": yard.challenger})
    yard.market.retire({"from": yard.challenger})
    yard.fund(newcomer)
    yard.register(newcomer, bond=AUDITOR_BOND)
    yard.warp(yard.market.worker(leaver)["unbondsAt"])
    yard.market.unbond({"from": leaver})
    yard.register(leaver, bond=AUDITOR_BOND)


@telling("Deposited", "Withdrawn", "ParamsSet", "Paused", "Unpaused")
def owner_tunes_and_pauses(yard: Yard) -> None:
    task = yard.running()
    yard.market.setParams(
        replace(PARAMS, fault_bps=1_000, unbond_for=60).as_tuple(), {"from": yard.owner}
    )
    yard.market.setPaused(True, {"from": yard.owner})
    yard.market.withdraw(yard.stranger, ETHER, {"from": yard.requester})
    yard.market.setPaused(False, {"from": yard.owner})
    yard.post()
    yard.fund(yard.stranger)
    yard.register(yard.stranger, bond=AUDITOR_BOND)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    yard.market.burn({"from": yard.stranger})


@telling("OwnershipTransferStarted", "OwnershipTransferred")
def ownership_moves(yard: Yard) -> None:
    market = TrainingMarket.at(yard.market.address)
    market.transferOwnership(yard.stranger, {"from": yard.owner})
    market.acceptOwnership({"from": yard.stranger})


# Open and running


@telling("TaskPosted", "SlotJoined", "SlotLeft", "TaskCancelled", "Credited")
def requester_cancels(yard: Yard) -> None:
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])
    yard.market.leave(task, 0, {"from": yard.workers[0]})
    yard.market.cancel(task, {"from": yard.requester})


@telling("TaskCancelled")
def slots_are_never_filled(yard: Yard) -> None:
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})


@telling("TaskStarted", "SlotPinged", "SlotPonged", "SlotEvicted", "Recorded")
def silent_worker_is_replaced(yard: Yard) -> None:
    task = yard.running(slots=2)
    yard.market.ping(task, 0, {"from": yard.requester})
    yard.market.pong(task, 0, {"from": yard.workers[0]})
    evict(yard, task, 1)
    yard.join(task, yard.workers[2])
    yard.submit(task, yard.workers[0], yard.workers[2])


@telling("SlotEvicted", "TaskFailed")
def lost_worker_excuses_the_others(yard: Yard) -> None:
    task = yard.running(slots=2)
    evict(yard, task, 1)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})


def evict(yard: Yard, task: int, slot: int) -> None:
    yard.market.ping(task, slot, {"from": yard.requester})
    yard.warp(yard.market.slot(task, slot)["pongBy"])
    yard.market.evict(task, slot, {"from": yard.stranger})


# Replicate


@telling("ClaimCommitted", "RevealStarted", "ClaimRevealed", "TaskSettled")
def dissenter_is_outvoted(yard: Yard) -> None:
    claims = [yard.claim, OTHER_CLAIM, yard.claim]
    task = yard.revealing(claims)
    for worker, claim in zip(yard.workers, claims, strict=False):
        yard.reveal(task, worker, claim)
    yard.market.settle(task, {"from": yard.stranger})


@telling("RevealStarted", "TaskSettled")
def one_claim_is_never_revealed(yard: Yard) -> None:
    task = yard.revealing([yard.claim, yard.claim, OTHER_CLAIM])
    for worker in yard.workers[:2]:
        yard.reveal(task, worker)
    yard.pass_deadline(task)
    yard.market.settle(task, {"from": yard.stranger})


@telling("TaskFailed")
def too_few_commit(yard: Yard) -> None:
    yard.revealing([yard.claim, None, None])


@telling("TaskFailed")
def nobody_agrees(yard: Yard) -> None:
    claims = [yard.claim, OTHER_CLAIM, None]
    task = yard.revealing(claims)
    for worker, claim in zip(yard.workers, claims[:2], strict=False):
        yard.reveal(task, worker, claim)
    yard.market.expire(task, {"from": yard.stranger})


# Audit, without disputes


@telling("TaskSubmitted", "SeatDrawn", "AuditStarted", "AuditCommitted", "OpeningStarted")
def audit_finds_nothing(yard: Yard) -> None:
    settle_window(yard, yard.audited())


@telling("ClaimSubmitted", "WindowStarted", "SeatsUnassigned")
def shares_follow_the_claim(yard: Yard) -> None:
    shares = [6_000, 3_000, 500]
    task = yard.running(slots=3, quorum=2, audits=6, shares_agreed=True)
    claim = Claim.of(yard.claim.result, yard.claim.root, shares)
    yard.submit(task, *yard.workers[:2], claim=claim, shares=shares)
    yard.submit(task, yard.workers[2], claim=OTHER_CLAIM, shares=[0, 0, 0])
    yard.draw(task)
    yard.pass_deadline(task)
    states, proofs = opened(yard, task)
    yard.market.open(task, claim.as_tuple(), states, proofs, {"from": yard.workers[0]})
    yard.pass_window(task)
    yard.market.settleShares(task, claim.as_tuple(), shares, {"from": yard.stranger})


@telling("AuditRevealed", "SeatClosed")
def one_auditor_never_reveals(yard: Yard) -> None:
    task = yard.window()
    yard.audit_reveal(task, yard.seats(task)[0])
    settle_window(yard, task)


@telling("WindowStarted")
def nobody_is_asked(yard: Yard) -> None:
    task = yard.submitted(audits=0)
    yard.draw(task)
    settle_window(yard, task)


@telling("DrawPostponed")
def draw_comes_late(yard: Yard) -> None:
    task = yard.submitted()
    chain.mine(300)
    yard.market.draw(task, {"from": yard.stranger})
    yard.draw(task)


@telling("TaskFailed")
def too_few_auditors_for_the_requester(yard: Yard) -> None:
    task = yard.submitted(min_audits=2)
    for auditor in yard.auditors:
        yard.market.retire({"from": auditor})
    yard.pass_deadline(task)
    yard.draw(task)


@telling("SeatsUnassigned", "WindowStarted")
def nobody_can_be_asked(yard: Yard) -> None:
    task = yard.submitted()
    for auditor in yard.auditors:
        yard.market.setDuty(2 * FEE, 0, 0, {"from": auditor})
    yard.draw(task)


@telling("TaskFailed", "SeatClosed")
def workers_never_open(yard: Yard) -> None:
    task = yard.auditing(slots=2)
    yard.audit_commit(task, yard.seats(task)[0])
    for _ in range(2):
        yard.pass_deadline(task)
        yard.market.expire(task, {"from": yard.stranger})


def settle_window(yard: Yard, task: int) -> None:
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})


def opened(yard: Yard, task: int) -> tuple[list[bytes], list[list[bytes]]]:
    segments = [seat.segment for seat in yard.seats(task)]
    return (
        [yard.trace.after(segment) for segment in segments],
        [yard.trace.proof_after(segment) for segment in segments],
    )


# Disputes


@telling("SegmentChallenged", "RefereesCalled", "HearingStarted", "DisputeResolved", "TaskFailed")
def auditors_find_a_fraud(yard: Yard) -> None:
    task = yard.window({0: WRONG, 1: digest("another")}, slots=2)
    first, second = yard.seats(task)
    yard.audit_reveal(task, first, WRONG)
    yard.audit_reveal(task, second, digest("another"))
    yard.challenge(task, idle_segment(yard, task))
    yard.rule(task, first.segment, [WRONG, WRONG, yard.trace.after(first.segment)])
    for segment in (second.segment, idle_segment(yard, task)):
        yard.market.resolve(task, segment, {"from": yard.stranger})


@telling("RefereeCommitted", "RulingStarted", "RefereeRevealed", "DisputeResolved", "TaskSettled")
def auditor_was_wrong(yard: Yard) -> None:
    task = yard.window({0: WRONG})
    seat = yard.seats(task)[0]
    yard.audit_reveal(task, seat, WRONG)
    truth = yard.trace.after(seat.segment)
    yard.rule(task, seat.segment, [truth, None, truth])
    settle_window(yard, task)


@telling("RefereesCalled", "DisputeResolved")
def second_committee_rejects_a_challenge(yard: Yard) -> None:
    task = yard.audited()
    segment = idle_segment(yard, task)
    truth = yard.trace.after(segment)
    yard.challenge(task, segment)
    yard.rule(task, segment, [truth, WRONG, None])
    yard.rule(task, segment, [truth, truth, WRONG, truth, None])
    settle_window(yard, task)


@telling("DisputeResolved", "TaskFailed")
def no_committee_decides(yard: Yard) -> None:
    task = yard.audited()
    segment = idle_segment(yard, task)
    yard.challenge(task, segment)
    yard.rule(task, segment, [WRONG, None, None])
    yard.rule(task, segment, [WRONG, WRONG, digest("x"), digest("y"), None])


@telling("SeatsAwaited", "SeatsUnassigned", "DisputeResolved", "TaskSettled")
def nobody_can_judge(yard: Yard) -> None:
    task = yard.audited()
    segment = idle_segment(yard, task)
    yard.challenge(task, segment)
    for auditor in yard.auditors[1:]:
        yard.market.setDuty(2 * FEE, 0, 0, {"from": auditor})
    yard.draw_referees(task, segment)
    yard.pass_dispute_deadline(task, segment)
    yard.draw_referees(task, segment)
    settle_window(yard, task)


@telling("SeatsAwaited", "DisputeResolved", "TaskFailed")
def nobody_can_judge_what_an_auditor_found(yard: Yard) -> None:
    task = yard.window({0: WRONG})
    seat = yard.seats(task)[0]
    yard.audit_reveal(task, seat, WRONG)
    for auditor in yard.auditors:
        yard.market.setDuty(2 * FEE, 0, 0, {"from": auditor})
    yard.draw_referees(task, seat.segment)
    yard.pass_dispute_deadline(task, seat.segment)
    yard.draw_referees(task, seat.segment)


@telling("SegmentServed", "DisputeResolved", "TaskFailed")
def served_leaf_without_its_data(yard: Yard) -> None:
    task, segment = served(yard)
    yard.rule(task, segment, [UNSERVED] * 3)


@telling("SegmentServed", "DisputeResolved")
def data_is_served_to_the_referees_alone(yard: Yard) -> None:
    task, segment = served(yard)
    yard.rule(task, segment, [yard.trace.after(segment)] * 3)


def served(yard: Yard) -> tuple[int, int]:
    task = yard.window()
    segment = idle_segment(yard, task)
    yard.market.challengeUnserved(task, segment, {"from": yard.challenger})
    yard.market.serve(
        task,
        segment,
        yard.claim.as_tuple(),
        yard.trace.after(segment),
        yard.trace.proof_after(segment),
        {"from": yard.workers[0]},
    )
    return task, segment


@telling("SegmentChallenged", "DisputeResolved", "TaskFailed")
def leaf_is_never_served(yard: Yard) -> None:
    task = yard.window()
    segment = idle_segment(yard, task)
    yard.market.challengeUnserved(task, segment, {"from": yard.challenger})
    yard.pass_dispute_deadline(task, segment)
    yard.market.resolve(task, segment, {"from": yard.stranger})


def idle_segment(yard: Yard, task: int) -> int:
    """A segment that no auditor was drawn for."""
    drawn = {seat.segment for seat in yard.seats(task)}
    return next(segment for segment in range(yard.trace.segments) if segment not in drawn)


# Score and Contest


@telling("ScoresRevealed", "TaskSettled")
def score_reaches_the_target(yard: Yard) -> None:
    rows = [[950], [951], [100]]
    task = yard.scoring(Policy.SCORE, rows, slots=2, tolerance=5)
    for seat, row in zip(yard.seats(task), rows, strict=True):
        yard.score_reveal(task, seat, row)
    yard.market.settle(task, {"from": yard.stranger})


@telling("ScoresRevealed", "TaskFailed")
def score_misses_the_target(yard: Yard) -> None:
    task = yard.scoring(Policy.SCORE, [[899]] * 3)
    for seat in yard.seats(task)[:2]:
        yard.score_reveal(task, seat, [899])
    settle_window(yard, task)


@telling("TaskFailed")
def no_evaluator_reveals(yard: Yard) -> None:
    settle_window(yard, yard.scoring(Policy.SCORE, [[950]] * 3))


@telling("ScoresRevealed", "TaskSettled")
def contest_with_an_entry_that_is_not_revealed(yard: Yard) -> None:
    claims = [Claim.of(digest(f"entry {index}"), digest("root")) for index in range(3)]
    task = yard.revealing(claims, Policy.CONTEST, stake=STAKE // 3)
    for worker, claim in zip(yard.workers, claims[:2], strict=False):
        yard.reveal(task, worker, claim)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    yard.draw(task)
    for seat in yard.seats(task):
        yard.score_commit(task, seat, [910, 920, 0])
    for seat in yard.seats(task):
        yard.score_reveal(task, seat, [910, 920, 0])
    yard.market.settle(task, {"from": yard.stranger})
