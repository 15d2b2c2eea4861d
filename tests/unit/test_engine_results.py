"""Results: what an audit looks at besides what it was asked for."""

import pytest

from tests.engine.nets import manifest_of
from trainyard.cli.engine import _verdicts
from trainyard.engine.errors import OtherRunError
from trainyard.engine.results import Asked, Audit, Verdict, with_end

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


# Two workers: each round is two parts and a merge.
ROUNDS = manifest_of(
    "mlp", mode="rounds", workers=2, until={"steps": 12}, rounds={"local_steps": 3}
)


@pytest.mark.parametrize(
    ("states", "asked", "looked_at"),
    [
        (list("0abCdeFghIjkL"), {4, 11}, {4, 11}),
        # The second merge is said to have ended the run: what repeats it brings it and its parts.
        (list("0abCdeFxxFxxF"), {4}, {4}),
        (list("0abCdeFxxFxxF"), {11}, {3, 4, 5, 11}),
        (list("0abCdeFxxFxxF"), {6, 9}, {3, 4, 5, 6, 9}),
        (list("0xx0xx0xx0xx0"), {9}, {0, 1, 2, 9}),
        # As far as a run in a folder has come.
        (list("0abCdeFxxFx"), {9}, {3, 4, 5, 9}),
        (list("0abCdeFx"), {6}, {6}),
    ],
)
def test_end_of_rounds_brings_the_merge_and_its_parts(
    states: list[str], asked: set[int], looked_at: set[int]
) -> None:
    assert with_end(ROUNDS, states, asked) == looked_at


RIGHT = Verdict(0, "segment 0", "a", "a", 1.0)
OTHER_BITS = Verdict(1, "segment 1", "a", "b", 1.0)
NONSENSE = Verdict(1, "segment 1", "a", None, 1.0, "it is no state")
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
    ],
)
def test_other_bits_of_another_class_prove_nothing(
    verdict: Verdict, own_class: str | None, is_open: bool
) -> None:
    audit = Audit("m", "r", "s", "s", (RIGHT, verdict), "x", own_class)

    *_, last = _verdicts(audit)

    assert audit.is_open is is_open
    line = "computed on class x, this machine is y: differing bits prove nothing"
    assert last.startswith(line) is is_open


def test_run_that_was_not_asked_for_is_refused() -> None:
    Asked().check("aa", "bb")
    Asked("AA", "0xbb").check("aa", "bb")
    with pytest.raises(OtherRunError, match="the manifest is aa, and ab was asked for"):
        Asked("ab").check("aa", "bb")
    with pytest.raises(OtherRunError, match="the root of the trace is bb, and ab was asked for"):
        Asked(None, "ab").check("aa", "bb")
