"""Rows of what events touched, from the market as it is after them."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, cast

from sqlalchemy import Table, delete, insert
from sqlalchemy.orm import DeclarativeBase, Session

from dapp.database.models import AccountRow, ParamsRow, PersonRow, TaskRow, WorkerRow
from dapp.indexer.encoding import encode_task
from dapp.indexer.market import Market, Touched
from trainyard.protocol.ledger.book import Account, Task
from trainyard.protocol.market import DisputeState, SeatState
from trainyard.protocol.moves import ENDED

# What one statement takes: SQLite binds some tens of thousands of values at most.
_AT_ONCE = 500
_HELD_SEATS = (SeatState.DRAWN, SeatState.COMMITTED, SeatState.REVEALED)


def project(session: Session, market: Market, touched: Touched) -> None:
    """Write the rows of all that was touched; what is no more has none."""
    tasks = [number for number in touched.tasks if number in market.book.tasks]
    # Whoever is in a touched task may have earned or lost by it.
    people = touched.people.union(*(market.parts[number] for number in tasks))
    _replace(session, TaskRow, "id", touched.tasks, (_task(market, one) for one in tasks))
    rows = (row for number in tasks for row in _people(market, number))
    _replace(session, PersonRow, "task", touched.tasks, rows)
    known = [who for who in people if who in market.book.workers]
    _replace(session, WorkerRow, "address", people, (_worker(market, who) for who in known))
    known = [who for who in people if who in market.book.accounts or who in market.tasks_of]
    _replace(session, AccountRow, "address", people, (_account(market, who) for who in known))
    if touched.params:
        session.execute(delete(ParamsRow))
        rows = (
            {"id": number, "document": json.dumps(asdict(one))}
            for number, one in enumerate(market.book.params)
        )
        _insert(session, ParamsRow, rows)


def _replace(
    session: Session,
    table: type[DeclarativeBase],
    key: str,
    keys: Iterable[int] | Iterable[str],
    rows: Iterable[dict[str, Any]],
) -> None:
    wanted = list(keys)
    column = getattr(table, key)
    for start in range(0, len(wanted), _AT_ONCE):
        session.execute(delete(table).where(column.in_(wanted[start : start + _AT_ONCE])))
    _insert(session, table, rows)


def _insert(session: Session, table: type[DeclarativeBase], rows: Iterable[dict[str, Any]]) -> None:
    found = list(rows)
    if found:
        # The table and not the class: there are no objects to keep in step.
        session.execute(insert(cast(Table, table.__table__)), found)


def _task(market: Market, number: int) -> dict[str, Any]:
    task, notes = market.book.tasks[number], market.notes[number]
    terms = task.terms
    return {
        "id": number,
        "requester": task.requester,
        "state": int(task.state),
        "failure": None if task.failure is None else int(task.failure),
        "policy": int(terms.policy),
        "env_class": hex_word(terms.env_class),
        "manifest": hex_word(terms.manifest),
        "slots": terms.slots,
        "slots_joined": task.joined.bit_count(),
        "reward": terms.reward,
        "stake": terms.stake,
        "escrow": terms.escrow,
        "audits": terms.audits,
        "segments": terms.segments,
        "disputes": len(task.disputes),
        "upheld": sum(one.state is DisputeState.UPHELD for one in task.disputes.values()),
        "is_listed": task.listed,
        "deadline": task.deadline,
        "posted_at": notes.posted_at,
        "updated_at": notes.updated_at,
        "ended_at": notes.ended_at,
        "paid": _paid(task, notes.refunded),
        "refunded": notes.refunded,
        "ledger": encode_task(task),
    }


def _paid(task: Task, refunded: int) -> int:
    """Of the requester's escrow, to whoever worked."""
    return max(0, task.terms.escrow - refunded) if task.state in ENDED else 0


def _people(market: Market, number: int) -> Iterable[dict[str, Any]]:
    for who, part in market.parts[number].items():
        yield {
            "task": number,
            "address": who,
            "roles": " ".join(part.roles),
            "put_in": part.put_in,
            "credited": part.credited,
            "slashed": part.slashed,
        }


def _worker(market: Market, who: str) -> dict[str, Any]:
    worker = market.book.workers[who]
    is_retired = not any(worker.env_class)
    return {
        "address": who,
        "env_class": None if is_retired else hex_word(worker.env_class),
        "profile": hex_word(worker.profile),
        "is_retired": is_retired,
        "in_pool": worker.pool_index > 0,
        "bond": worker.bond,
        "bond_locked": worker.bond_locked,
        "since": worker.since,
        "unbonds_at": worker.unbonds_at,
        "min_fee": worker.min_fee,
        "min_audit_for": worker.min_audit_for,
        "min_answer_for": worker.min_answer_for,
    }


def _account(market: Market, who: str) -> dict[str, Any]:
    account = market.book.accounts.get(who, Account())
    earned = lost = slots = seats = 0
    for number in market.tasks_of.get(who, ()):
        task, part = market.book.tasks[number], market.parts[number][who]
        lost += part.slashed
        if task.state in ENDED:
            if part.works and "requester" not in part.roles:
                earned += max(0, part.credited - part.put_in)
                lost += max(0, part.put_in - part.credited)
            continue
        slots += sum(
            slot.worker == who and bool(task.joined >> index & 1)
            for index, slot in enumerate(task.slots)
        )
        seats += sum(
            seat.member == who and seat.state in _HELD_SEATS
            for panel in task.panels.values()
            for seat in panel.seats
        )
    return {
        "address": who,
        "credit": account.credit,
        "settled": account.settled,
        "failed": account.failed,
        "audits_right": account.audits_right,
        "audits_wrong": account.audits_wrong,
        "earned": earned,
        "lost": lost,
        "slots_held": slots,
        "seats_held": seats,
    }


def hex_word(word: bytes) -> str:
    return f"0x{word.hex()}"
