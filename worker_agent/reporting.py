"""What an agent and its tasks look like to its operator: documents, from the book and files."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from trainyard.protocol.ledger.book import Account, Book, Task, Worker
from trainyard.protocol.market import OWN_PANEL
from trainyard.protocol.moves import next_move
from worker_agent.progress import LIVE, Shelf
from worker_agent.settings import Home
from worker_agent.situation import ENDED, slots_of

Document = dict[str, Any]


def task_reports(
    home: Home, book: Book, me: str, now: int, block: int, *, ended: bool
) -> list[Document]:
    """The tasks that we are in, and with `ended` those that we were in, the newest first."""
    found = []
    for number, task in sorted(book.tasks.items(), reverse=True):
        roles = roles_of(task, me)
        if roles and (ended or task.state not in ENDED):
            found.append(_task_report(home, number, task, roles, me, now, block))
    return found


def roles_of(task: Task, me: str) -> list[str]:
    """All that we are or were in a task."""
    roles = ["requester"] if task.requester == me else []
    held = slots_of(task, me)
    for index, slot in enumerate(task.slots):
        if slot.worker == me:
            roles.append(f"worker of slot {index}" + ("" if index in held else ", given up"))
    for (segment, _), panel in sorted(task.panels.items()):
        what = "auditor" if segment == OWN_PANEL else "referee"
        roles += [f"{what} of segment {seat.segment}" for seat in panel.seats if seat.member == me]
    return roles


def account_report(book: Book, me: str, balance_wei: int) -> Document:
    account, worker = book.accounts.get(me, Account()), book.workers.get(me, Worker(b"", b""))
    return {
        "balance_wei": balance_wei,
        "credit": account.credit,
        "bond": worker.bond,
        "bond_locked": worker.bond_locked,
        "staked": staked(book, me),
        "is_registered": any(worker.env_class),
        "is_in_pool": worker.pool_index > 0,
        "settled": account.settled,
        "failed": account.failed,
        "audits_right": account.audits_right,
        "audits_wrong": account.audits_wrong,
    }


def staked(book: Book, me: str) -> int:
    """What tasks hold of us as stakes."""
    return sum(
        task.terms.stake * len(slots_of(task, me))
        for task in book.tasks.values()
        if task.state not in ENDED
    )


def _task_report(
    home: Home, number: int, task: Task, roles: list[str], me: str, now: int, block: int
) -> Document:
    shelf = Shelf(home.record(number))
    move = next_move(task, now, block)
    progress = shelf.progress()
    return {
        "task": number,
        "roles": roles,
        "state": task.state.name.lower(),
        "failure": None if task.failure is None else task.failure.name.lower(),
        "reward_wei": task.terms.reward,
        "stake_wei": task.terms.stake,
        "training": _training(shelf.read(LIVE), _batch(shelf)),
        "waits_for": None if move is None else {**asdict(move), "is_us": me in move.who},
        "failures": {work: asdict(one) for work, one in progress.failures.items()},
        "refused": progress.refused,
    }


def _training(live: Mapping[str, Any] | None, batch: int | None) -> Document | None:
    if live is None:
        return None
    step, steps, pace = live["step"], live["steps"], live["examples_per_s"]
    left_s = None
    if batch is not None and pace > 0 and live["phase"] == "training":
        left_s = (steps - step) * batch / pace
    return {
        "phase": live["phase"],
        "step": step,
        "steps": steps,
        "share": step / steps if steps else 0.0,
        "loss": live["loss"],
        "metrics": live["metrics"],
        "examples_per_s": pace,
        "left_s": left_s,
        "energy_j": live["energy_j"],
        "silent_slots": sorted({*map(int, live["silent"])} - {*live.get("restless", ())}),
        "awaited_slots": sorted(live.get("restless", ())),
        "at": live["at"],
    }


def _batch(shelf: Shelf) -> int | None:
    """Records in a step, as the manifest says."""
    manifest = shelf.read("manifest.json")
    return None if manifest is None else int(manifest["training"]["batch"])
