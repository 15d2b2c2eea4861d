"""Who is in a round, as a table."""

import pytest

from trainyard.engine.coordinating import Standing, decide
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
