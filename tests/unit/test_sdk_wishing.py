"""What a requester says in a few words, and what is no such thing."""

from datetime import timedelta
from typing import Any, cast

import numpy as np
import pytest

from trainyard.protocol.market import Policy
from trainyard.protocol.offering import Wish
from trainyard.sdk.composing import Shape
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.wishing import seconds_of, verification_of, wei_of


@pytest.mark.parametrize(
    ("said", "wei"),
    [
        (7, 7),
        ("7 wei", 7),
        ("0.25 ETH", 10**18 // 4),
        ("1_000 gwei", 10**12),
        (" 2 ether ", 2 * 10**18),
        ("0.000000000000000001 eth", 1),
    ],
)
def test_amounts_are_whole_wei(said: int | str, wei: int) -> None:
    assert wei_of(said) == wei


@pytest.mark.parametrize("said", ["", "5", "0.5", "1 euro", "-1 ETH", "1e18 wei", -1, True, 0.5])
def test_what_is_no_amount_is_refused_by_its_text(said: Any) -> None:
    with pytest.raises(RefusedError, match="budget: "):
        wei_of(said)


def test_a_part_of_a_wei_is_refused() -> None:
    with pytest.raises(RefusedError, match="not a whole number of wei"):
        wei_of("0.0000000000000000001 ETH")


@pytest.mark.parametrize(("said", "seconds"), [(90, 90), (1.5, 1), (timedelta(minutes=2), 120)])
def test_times_are_whole_seconds(said: Any, seconds: int) -> None:
    assert seconds_of(said) == seconds


@pytest.mark.parametrize("said", [0, -5, float("nan"), float("inf"), 1e10, "ten", None, True])
def test_what_is_no_time_is_refused(said: Any) -> None:
    with pytest.raises(RefusedError, match="deadline: "):
        seconds_of(said)


@pytest.mark.parametrize(
    ("verify", "mode", "wish"),
    [
        (None, "single", Wish(policy=Policy.AUDIT)),
        ("audit", "single", Wish(policy=Policy.AUDIT)),
        ("audit:4", "sync", Wish(policy=Policy.AUDIT, audits=4)),
        ("Replicate:3", "single", Wish(policy=Policy.REPLICATE, slots=3)),
        ("score:0.95", "async", Wish(policy=Policy.SCORE, target=950_000)),
    ],
)
def test_ways_to_verify(verify: str | None, mode: str, wish: Wish) -> None:
    assert verification_of(verify, mode) == wish


@pytest.mark.parametrize(
    ("verify", "mode", "why"),
    [
        ("trust", "single", "is no way to verify"),
        ("audit:many", "single", "not the number it needs"),
        ("audit:16", "single", "0 to 15"),
        ("replicate:1", "single", "2 to 32"),
        ("replicate", "sync", "trains alone"),
        ("audit", "async", "cannot be replayed"),
        (None, "async", "say so, as 'score:0.9'"),
        ("score:0.9", "single", "cannot be replayed"),
        (cast(Any, 2), "single", "2 is no way to verify"),
        ("score", "async", "not the number it needs"),
        ("score:7", "async", "not the number it needs"),
    ],
)
def test_ways_that_prove_nothing_are_refused(verify: str | None, mode: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        verification_of(verify, mode)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("epochs", "3"),
        ("epochs", None),
        ("steps", 0),
        ("batch_size", None),
        ("batch_size", 32.0),
        ("workers", True),
        ("threads", "two"),
        ("seed", None),
        ("steps_per_segment", -1),
        ("validation_split", "a fifth"),
        ("validation_split", float("nan")),
        ("class_weight", [1.0, 2.0]),
        ("class_weight", {0: None}),
        ("rounds", "int8"),
    ],
)
def test_what_nobody_could_reckon_with_is_refused_by_its_name(name: str, said: Any) -> None:
    with pytest.raises(RefusedError, match=rf"^{name}: .*(give|say|such as)"):
        Shape(**{name: said})


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    given: Any = {"epochs": np.int64(3), "batch_size": np.uint8(16)}

    shape = Shape(**given)

    assert (type(shape.epochs), shape.epochs, shape.batch_size) == (int, 3, 16)
