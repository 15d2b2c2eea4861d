"""Copies the states of a run from the worker that has them."""

import asyncio
import json
from pathlib import Path

from pydantic import ValidationError

from trainyard.engine.errors import RunError
from trainyard.engine.journal import Entry, Journal, held
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.state import State
from trainyard.protocol.errors import PermanentError
from worker_agent.peers.plane import PeerPlane
from worker_agent.runner.task import Task

_ASK_S = 10.0
_DESK = "desk"


def count_states(run: Path) -> int:
    try:
        return len(Journal.read(run).entries)
    except RunError:
        return 0


async def copy_run(task: Task, plane: PeerPlane, slot: int, count: int) -> None:
    """Have the first `count` states as the worker of `slot` has them, and no others before them."""
    most = most_state_bytes(task.manifest)
    desk = task.shelf.path(_DESK)
    desk.mkdir(exist_ok=True)
    with held(task.run):
        journal = Journal.open(task.run, task.manifest.canonical)
        while journal.entries and not await _is_theirs(plane, slot, journal.entries[-1]):
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
                raise PermanentError(f"worker {slot} sent another state than it named")
            journal.append(entry, state)
    task.live.states = len(journal.entries)


async def _is_theirs(plane: PeerPlane, slot: int, entry: Entry) -> bool:
    return (await _entry(plane, slot, entry.number)).state == entry.state


async def _entry(plane: PeerPlane, slot: int, number: int) -> Entry:
    body = json.dumps(number).encode()
    try:
        return Entry.model_validate_json(await plane.ask(slot, "entry", body, timeout_s=_ASK_S))
    except ValidationError as error:
        raise PermanentError(f"worker {slot} names a state that is none") from error
