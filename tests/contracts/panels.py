"""Panels that do their duty, or part of it, on any task that was submitted."""

from collections.abc import Collection, Sequence
from typing import Any

from tests.contracts.yard import Seat, Yard
from trainyard.protocol.commitments import Claim


def open_audits(
    yard: Yard, task: int, *, silent: Collection[int] = (), claim: Claim | None = None
) -> list[Seat]:
    """Draw, let all seats but the silent ones commit to the truth, and open the workers' states."""
    yard.draw(task)
    seats = yard.seats(task)
    for seat in seats:
        if seat.index not in silent:
            yard.audit_commit(task, seat)
    if silent:
        yard.pass_deadline(task)
    states = [yard.trace.after(seat.segment) for seat in seats]
    proofs = [yard.trace.proof_after(seat.segment) for seat in seats]
    opened = (claim or yard.claim).as_tuple()
    yard.market.open(task, opened, states, proofs, {"from": yard.stranger})
    return seats


def pass_audits(yard: Yard, task: int, claim: Claim | None = None) -> list[Seat]:
    """All auditors find what the workers claim; the window is open."""
    seats = open_audits(yard, task, claim=claim)
    for seat in seats:
        yard.audit_reveal(task, seat)
    return seats


def evaluate(
    yard: Yard,
    task: int,
    rows: Sequence[Sequence[int] | None],
    *,
    hidden: Collection[int] = (),
) -> list[Seat]:
    """Draw evaluators who give these scores; None does not commit, and hidden does not reveal."""
    yard.draw(task)
    seats = yard.seats(task)
    scored = [(seat, row) for seat, row in zip(seats, rows, strict=True) if row is not None]
    for seat, row in scored:
        yard.score_commit(task, seat, row)
    if len(scored) < len(seats):
        yard.pass_deadline(task)
        yard.market.expire(task, {"from": yard.stranger})
    for seat, row in scored:
        if seat.index not in hidden:
            yard.score_reveal(task, seat, row)
    return seats


def members(seats: Sequence[Seat]) -> list[Any]:
    return [seat.member for seat in seats]
