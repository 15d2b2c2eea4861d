"""Copies the states of a run from the worker that has them."""

import asyncio
import json
from pathlib import Path

from pydantic import ValidationError

from trainyard.engine.counting import Counters
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Entry, Journal, held
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.state import State
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest import Manifest
from worker_agent.peers.plane import PeerPlane
from worker_agent.runner.task import Task

_ASK_S = 10.0
_DESK = "desk"


def count_states(run: Path) -> int:
    try:
        return len(Journal.read(run).entries)
    except RunError:
        return 0


class OtherStateError(PermanentError):
    """What another worker gives is no state of this run, or of another one than ours."""


async def copy_run(
    task: Task, plane: PeerPlane, slot: int, count: int, *, may_rewind: bool = True
) -> None:
    """Have the first `count` states as the worker of `slot` has them, and no others before them.

    Ours are given up where they differ only if we may: for who leads.
    """
    count = min(count, task.manifest.plan.segments + 1)
    most = most_state_bytes(task.manifest)
    desk = task.shelf.path(_DESK)
    desk.mkdir(exist_ok=True)
    with held(task.run):
        journal = Journal.open(task.run, task.manifest.canonical)
        while journal.entries and not await _is_theirs(plane, slot, journal.entries[-1]):
            if not may_rewind:
                raise OtherStateError(f"worker {slot} has other states than we have")
            journal.rewind(len(journal.entries) - 1)
        for number in range(len(journal.entries), count):
            entry = await _entry(plane, slot, number)
            path, body = desk / f"{number}", json.dumps(number).encode()
            try:
                await plane.fetch(slot, "state", body, path, most_bytes=most)
                state = await asyncio.to_thread(State.load, path)
            finally:
                path.unlink(missing_ok=True)
            if state.hash.hex() != entry.state or entry.number != number:
                raise OtherStateError(f"worker {slot} sent another state than it named")
            check_state(task.manifest, entry, state)
            journal.append(entry, state)
    task.live.states = len(journal.entries)


def check_state(manifest: Manifest, entry: Entry, state: State) -> None:
    """Refuse a state that cannot be one of the run at the place of `entry`."""
    counters = Counters.of(state)
    if state.size > most_state_bytes(manifest):
        raise OtherStateError(f"state {entry.number} is larger than one of this run can be")
    if counters.step != entry.step or entry.step > manifest.plan.steps:
        raise OtherStateError(f"state {entry.number} is not of step {entry.step}")


async def _is_theirs(plane: PeerPlane, slot: int, entry: Entry) -> bool:
    return (await _entry(plane, slot, entry.number)).state == entry.state


async def _entry(plane: PeerPlane, slot: int, number: int) -> Entry:
    body = json.dumps(number).encode()
    try:
        return Entry.model_validate_json(await plane.ask(slot, "entry", body, timeout_s=_ASK_S))
    except ValidationError as error:
        raise OtherStateError(f"worker {slot} names a state that is none") from error
