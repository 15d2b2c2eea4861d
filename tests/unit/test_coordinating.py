"""Who is in a round, as a table."""

import pytest

from trainyard.engine.coordinating import Deadline, Standing, decide
from trainyard.engine.leaves import Absence

AWAY, LATE = Absence.AWAY, Absence.LATE


@pytest.mark.parametrize(
    ("offered", "there", "overdue", "absences"),
    [
        # All are there and done.
        ({0, 1, 2}, {0, 1, 2}, False, {}),
        # One is waited for, until the deadline.
        ({0, 1}, {0, 1, 2}, False, None),
        ({0, 1}, {0, 1, 2}, True, {2: LATE}),
        # One that is lost is not waited for; what it offered before counts.
        ({0, 1}, {0, 1}, False, {2: AWAY}),
        ({0, 1, 2}, {0, 1}, False, {}),
        # A round of nobody is none, whoever is there and however late it is.
        (set(), {0, 1, 2}, True, None),
        (set(), set(), False, None),
        # Nor is one of fewer than half of the workers, whoever says that the others are away.
        ({0}, {0}, False, None),
        ({0}, set(), True, None),
        ({0, 1}, set(), True, {2: AWAY}),
    ],
)
def test_who_is_left_out(
    offered: set[int], there: set[int], overdue: bool, absences: dict[int, Absence] | None
) -> None:
    assert decide(Standing(3, offered, there, quorum=2, overdue=overdue)) == absences


@pytest.mark.parametrize(
    ("deadline", "longest_s", "waited_s"),
    [
        # However long it takes.
        (Deadline(), None, None),
        (Deadline(), 5.0, None),
        (Deadline(4.0), 5.0, 4.0),
        # Nobody knows yet how long a part takes.
        (Deadline(4.0, times=3.0, first_s=60.0), None, 60.0),
        (Deadline(4.0, times=3.0, first_s=60.0), 1.0, 4.0),
        (Deadline(4.0, times=3.0, first_s=60.0), 5.0, 15.0),
    ],
)
def test_how_long_others_are_waited_for(
    deadline: Deadline, longest_s: float | None, waited_s: float | None
) -> None:
    assert deadline.after(longest_s) == waited_s
