"""Results: what an audit looks at besides what it was asked for."""

import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.results import with_end

RUNNING, ENDED = list("abcde"), list("abccc")


@pytest.mark.parametrize(
    ("states", "asked", "looked_at"),
    [
        (RUNNING, {1, 3}, {1, 3}),
        (ENDED, {0}, {0}),
        # Both repeat the end of the run, which segment 1 is said to have come to.
        (ENDED, {3}, {1, 3}),
        (ENDED, {2, 3}, {1, 2, 3}),
        (list("aaaaa"), {2}, {0, 2}),
    ],
)
def test_who_looks_at_an_end_looks_at_what_ended_the_run(
    states: list[str], asked: set[int], looked_at: set[int]
) -> None:
    assert with_end(manifest_of("mlp"), states, asked) == looked_at
