"""The writer beside the computation: in order, to the end, and no failure of it is lost."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from trainyard.engine.errors import StateError
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State
from trainyard.engine.writing import Writer

# Where the file of this state should be, something else is in the way.
BLOCKED = 2


def state(number: int) -> State:
    return State({"a": np.full(1000, number, np.int64)})


def entry(number: int) -> Entry:
    return Entry(number=number, state=state(number).hash.hex(), step=number)


class Yard:
    def __init__(self, folder: Path) -> None:
        self.journal = Journal.open(folder, b"{}")
        self.handed_over: list[int] = []
        self.told: list[int] = []
        self.writer = Writer(self.journal, self._kept)

    def _kept(self, entry: Entry) -> None:
        # INVARIANT: who is told of a state finds it.
        assert Journal.read(self.journal.folder).state(entry.number) == state(entry.number)
        self.told.append(entry.number)

    def compute(self, count: int, failing: Exception | None = None) -> None:
        """Hand over so many states, and then fail, if so."""
        with self.writer:
            for number in range(count):
                self.writer.append(partial(entry, number), state(number))
                self.handed_over.append(number)
            if failing is not None:
                raise failing

    @property
    def on_disk(self) -> list[int]:
        return [one.number for one in Journal.open(self.journal.folder, b"{}").entries]


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


@pytest.fixture
def blocked(yard: Yard) -> Yard:
    yard.journal.path_of(BLOCKED).mkdir()
    return yard


def test_states_are_kept_and_told_in_order(yard: Yard) -> None:
    yard.compute(20)

    assert yard.told == yard.on_disk == list(range(20))


def test_failure_is_raised_by_the_next_append(blocked: Yard) -> None:
    with pytest.raises(StateError, match=f"cannot write the state .*{BLOCKED:06}"):
        blocked.compute(20)

    assert blocked.handed_over == list(range(BLOCKED + 1))
    assert blocked.told == blocked.on_disk == list(range(BLOCKED))


def test_failure_of_the_last_append_is_raised_at_the_end(blocked: Yard) -> None:
    with pytest.raises(StateError, match=f"cannot write the state .*{BLOCKED:06}"):
        blocked.compute(BLOCKED + 1)

    assert blocked.handed_over == list(range(BLOCKED + 1))


def test_error_of_the_computation_is_not_hidden(blocked: Yard) -> None:
    with pytest.raises(ZeroDivisionError):
        blocked.compute(BLOCKED + 1, ZeroDivisionError())


def test_state_that_is_under_way_is_kept_when_the_computation_fails(yard: Yard) -> None:
    with pytest.raises(ZeroDivisionError):
        yard.compute(2, ZeroDivisionError())

    assert yard.told == yard.on_disk == [0, 1]
