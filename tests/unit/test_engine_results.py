"""Results: what an audit looks at besides what it was asked for."""

import pytest

from tests.engine.nets import manifest_of
from trainyard.cli.engine import _verdicts
from trainyard.engine.errors import OtherRunError
from trainyard.engine.results import Asked, Audit, Verdict, looked_at_for


@pytest.mark.parametrize(
    ("states", "segment", "made_by"),
    [
        ("abcde", 3, {2, 0}),
        # What repeats an end was made by what first came to it, whatever follows.
        ("abccc", 3, {1}),
        ("abccc", 2, {1, 0}),
        ("abcccde", 4, {1, 0}),
        ("aaaaa", 2, {0}),
        ("abcde", 0, {0}),
        # Each of those before the end is looked at for some segment after it.
        ("abcdeeee", 4, {3, 0}),
        ("abcdeeee", 5, {3, 1}),
        ("abcdeeee", 6, {3, 2}),
    ],
)
def test_end_is_made_by_the_segment_that_first_came_to_it(
    states: str, segment: int, made_by: set[int]
) -> None:
    assert looked_at_for(manifest_of("mlp").plan, states, segment) == made_by


# Two workers: each round is two parts and a merge.
ROUNDS = manifest_of(
    "mlp", mode="rounds", workers=2, until={"steps": 12}, rounds={"local_steps": 3}
)


@pytest.mark.parametrize(
    ("states", "segment", "made_by"),
    [
        ("0abCdeFghIjkL", 11, {6, 7, 8, 2}),
        ("0abCdeFghIjkL", 3, {0, 1, 2}),
        ("0abCdeFxxFxxF", 11, {3, 4, 5}),
        ("0abCdeFxxFxxF", 7, {3, 4, 5, 1}),
        ("0xx0xx0xx0xx0", 9, {0, 1, 2}),
        # As far as a run in a folder has come.
        ("0abCdeFx", 6, {3, 4, 5, 0}),
    ],
)
def test_end_of_rounds_is_made_by_a_merge_and_its_parts(
    states: str, segment: int, made_by: set[int]
) -> None:
    assert looked_at_for(ROUNDS.plan, states, segment) == made_by


RIGHT = Verdict(0, "segment 0", "a", "a", 1.0)
OTHER_BITS = Verdict(1, "segment 1", "a", "b", 1.0)
NONSENSE = Verdict(1, "segment 1", "a", None, 1.0, "it is no state")
MERGE = Verdict(1, "merge", "a", "b", 1.0, same_anywhere=True)
FAR, NEAR = (Verdict(1, "segment 1", "a", "b", 1.0, tolerated=near) for near in (False, True))
UNSIGNED = Verdict(1, "segment 1", "a", "a", 1.0, unsigned="no offer is here")


@pytest.mark.parametrize(
    ("verdict", "own_class", "is_open"),
    [
        (RIGHT, "y", False),
        (OTHER_BITS, "y", True),
        # On the same class bits do prove it; and some things are wrong on any machine.
        (OTHER_BITS, "x", False),
        (OTHER_BITS, None, False),
        (NONSENSE, "y", False),
        (UNSIGNED, "y", False),
        (MERGE, "y", False),
        (FAR, "y", False),
        (NEAR, "y", True),
    ],
)
def test_other_bits_of_another_class_prove_nothing(
    verdict: Verdict, own_class: str | None, is_open: bool
) -> None:
    audit = Audit("m", "r", "s", "s", (RIGHT, verdict), (), "x", own_class)

    *_, last = _verdicts(audit)

    assert audit.is_open is is_open
    line = "computed on class x, this machine is y: differing bits alone prove nothing"
    assert last.startswith(line) is is_open


@pytest.mark.parametrize(
    ("alike", "verdict", "is_open"),
    [
        (False, RIGHT, False),
        (False, OTHER_BITS, False),
        (True, RIGHT, True),
        (True, OTHER_BITS, True),
        (True, FAR, False),
    ],
)
def test_no_class_excuses_another_beginning(alike: bool, verdict: Verdict, is_open: bool) -> None:
    audit = Audit("m", "r", "s", "t", (verdict,), (), "x", "y", begins_alike=alike)

    assert not audit.agrees
    assert audit.is_open is is_open


def test_run_that_was_not_asked_for_is_refused() -> None:
    Asked().check("aa", "bb")
    Asked("AA", "0xbb").check("aa", "bb")
    with pytest.raises(OtherRunError, match="the manifest is aa, and ab was asked for"):
        Asked("ab").check("aa", "bb")
    with pytest.raises(OtherRunError, match="the root of the trace is bb, and ab was asked for"):
        Asked(None, "ab").check("aa", "bb")
