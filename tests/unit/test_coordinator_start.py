"""With which state a run in rounds begins, among strangers and among one's own."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.unit.test_engine_round_log import MANIFEST, SIGNERS, START
from trainyard.engine.coordinating import Deadline
from trainyard.engine.coordinator import Coordinator
from trainyard.engine.crew import Lost
from trainyard.engine.events import Event, Started
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Journal
from trainyard.engine.round_log import RoundLog
from trainyard.engine.state import State

OTHER = State({**START.tensors, "weights/a": np.ones(4, np.float32)})


class OverError(Exception):
    """All has been said."""


class Crew:
    """Members that say what is written, and of whom it is seen who is dismissed."""

    def __init__(self, said: Iterable[Event]) -> None:
        self.slots: set[int] = set()
        self.dismissed: list[int] = []
        self._said = iter(said)

    def start(self, slot: int) -> None:
        self.slots.add(slot)

    def dismiss(self, slot: int) -> None:
        self.slots.discard(slot)
        self.dismissed.append(slot)

    def listen(self, timeout_s: float | None) -> list[Event | Lost]:
        for one in self._said:
            return [one]
        raise OverError


def started(slot: int, state: State) -> Started:
    return Started(slot=slot, steps=9, segments=9, start=state.hash.hex())


def lead(folder: Path, starter: int | None, *said: Event) -> tuple[RoundLog, Crew]:
    exchange = Exchange(folder / "exchange")
    log = RoundLog(MANIFEST, Journal.open(folder, MANIFEST.canonical), exchange, SIGNERS)
    for state in (START, OTHER):
        exchange.put(state)
    crew = Crew(said)
    with pytest.raises(OverError):
        Coordinator(
            log,
            exchange,
            crew,
            Deadline(),
            tell=lambda _: None,
            most_losses=None,
            starter=starter,
        ).lead()
    return log, crew


def test_first_worker_of_our_own_machine_begins(tmp_path: Path) -> None:
    log, crew = lead(tmp_path, None, started(1, START))

    assert log.start == START.hash.hex()
    assert crew.dismissed == []


def test_strangers_do_not_begin(tmp_path: Path) -> None:
    log, crew = lead(tmp_path, 0, started(1, OTHER))

    assert not log.has_begun
    assert crew.dismissed == []


@pytest.mark.parametrize("first", [0, 1])
def test_stranger_that_begins_otherwise_is_refused(tmp_path: Path, first: int) -> None:
    said = {0: started(0, START), 1: started(1, OTHER)}

    log, crew = lead(tmp_path, 0, said[first], said[1 - first])

    assert log.start == START.hash.hex()
    assert crew.dismissed == [1]


def test_stranger_that_begins_alike_is_welcome(tmp_path: Path) -> None:
    log, crew = lead(tmp_path, 0, started(1, START), started(0, START))

    assert log.has_begun
    assert crew.dismissed == []
