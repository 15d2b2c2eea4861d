"""Which records each step takes: all of them, once an epoch, in an order that never changes."""

import json
from collections import Counter
from itertools import permutations
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vectors.make_order import make_vectors
from trainyard.engine import order as order_module
from trainyard.engine.order import LARGEST_SEED, MOST_RECORDS, Order, share_of

VECTORS = Path(__file__).parents[1] / "vectors" / "order.json"

seeds = st.integers(0, LARGEST_SEED)


@given(seeds, st.integers(1, 300), st.integers(1, 70), st.integers(0, 4))
def test_each_record_comes_once_an_epoch(seed: int, records: int, batch: int, epoch: int) -> None:
    order = Order(seed, records)
    first, last = epoch * records // batch, -(-(epoch + 1) * records // batch)

    taken = np.concatenate([order.records_at(step, batch) for step in range(first, last)])

    start = epoch * records - first * batch
    assert sorted(taken[start : start + records].tolist()) == list(range(records))


@given(st.data())
def test_what_is_held_out_is_never_trained_on(data: st.DataObject) -> None:
    records = data.draw(st.integers(2, 300))
    held_out = data.draw(st.integers(0, records - 1))
    order = Order(data.draw(seeds), records, held_out)

    validation = order.held_out_at(0, held_out).tolist()

    for epoch in range(2):
        trained = order.records_at(epoch, order.trained).tolist()
        assert sorted(trained + validation) == list(range(records))


@given(seeds, st.integers(1, 10**6), st.integers(0, 10**9), st.integers(1, 64))
def test_steps_are_the_same_together_and_alone(
    seed: int, records: int, step: int, batch: int
) -> None:
    order = Order(seed, records)

    together = order.records_between(step, step + 3, batch)

    assert together.dtype == np.int64
    assert together.shape == (3, batch)
    for place in range(3):
        assert np.array_equal(together[place], order.records_at(step + place, batch))


@given(seeds, st.integers(1, 500), st.integers(0, 499), st.integers(0, 3))
def test_order_is_the_same_kept_whole_and_computed(
    seed: int, records: int, held_out: int, epoch: int
) -> None:
    order = Order(seed, records, held_out % records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_module, "_LARGEST_TABLE", 0)
        computed = order.records_at(epoch, order.trained)

    assert np.array_equal(order.records_at(epoch, order.trained), computed)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
@given(batch=st.integers(8, 200), step=st.integers(0, 10**6))
def test_workers_share_one_global_batch(workers: int, batch: int, step: int) -> None:
    order = Order(3, 1_000)
    whole = order.records_at(step, batch)

    parts = [whole[share_of(batch, workers, slot)] for slot in range(workers)]

    assert np.array_equal(np.concatenate(parts), whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_even_shares_are_contiguous() -> None:
    assert [share_of(12, 3, slot) for slot in range(3)] == [slice(0, 4), slice(4, 8), slice(8, 12)]


@pytest.mark.parametrize(
    ("batch", "workers", "slot"), [(8, 2, 2), (8, 2, -1), (1, 2, 0), (8, 0, 0)]
)
def test_share_of_nobody_is_refused(batch: int, workers: int, slot: int) -> None:
    with pytest.raises(ValueError, match=f"slot {slot} of {workers} workers"):
        share_of(batch, workers, slot)


def test_seeds_and_epochs_have_orders_of_their_own() -> None:
    orders = {
        tuple(Order(seed, 1_000).records_at(epoch, 1_000).tolist())
        for seed in range(5)
        for epoch in range(5)
    }

    assert len(orders) == 25


def test_seeds_hold_out_different_records() -> None:
    held_out = {tuple(sorted(Order(seed, 100, 10).held_out_at(0, 10))) for seed in range(20)}

    assert len(held_out) == 20


@pytest.mark.parametrize("records", [2, 3, 4, 5])
def test_every_permutation_of_a_few_records_is_as_likely(records: int) -> None:
    draws = 20 * factorial(records)
    # Over the orders of one seed, as a run meets them.
    found = Counter(
        tuple(row) for row in Order(11, records).records_between(0, draws, records).tolist()
    )

    assert set(found) <= set(permutations(range(records)))
    statistic = sum((found[p] - 20) ** 2 / 20 for p in permutations(range(records)))
    # Mean and deviation of chi-square: one seed in a thousand is over by some 3.5 deviations.
    freedom = factorial(records) - 1
    assert statistic < freedom + 3.5 * (2 * freedom) ** 0.5 + 6


@pytest.mark.parametrize("held_out", [0, 20])
def test_any_record_may_come_at_any_place(held_out: int) -> None:
    order, epochs = Order(5, 80 + held_out, held_out), 1_000
    trained = np.sort(order.records_at(0, 80))
    table = np.zeros((80, 80))
    for row in order.records_between(0, epochs, 80):
        table[np.arange(80), np.searchsorted(trained, row)] += 1

    expected = epochs / 80
    statistic = ((table - expected) ** 2 / expected).sum()

    freedom = 79**2
    assert abs(statistic - freedom) < 3.5 * (2 * freedom) ** 0.5


def test_neighbours_do_not_stay_together() -> None:
    numbers = Order(9, 100_000).records_at(0, 100_000)

    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(np.arange(100_000), numbers)[0, 1]) < 0.01
    # Of neighbours that stay neighbours, two are expected whatever the size.
    assert np.count_nonzero(np.abs(np.diff(numbers)) == 1) < 10


def test_step_far_away_is_found_at_once() -> None:
    order = Order(LARGEST_SEED, MOST_RECORDS)

    numbers = order.records_at(10**12, 10**4)

    assert len(set(numbers.tolist())) == 10**4
    assert 0 <= numbers.min() <= numbers.max() < MOST_RECORDS


@pytest.mark.parametrize(
    ("step", "batch", "epoch"), [(0, 4, 0), (1, 4, 0), (2, 4, 0), (3, 4, 1), (5, 10, 5), (1, 25, 2)]
)
def test_epoch_is_that_of_the_first_record(step: int, batch: int, epoch: int) -> None:
    assert Order(1, 12, held_out=2).epoch_of(step, batch) == epoch


def test_batch_may_be_larger_than_the_set() -> None:
    assert Counter(Order(1, 3).records_at(0, 9).tolist()) == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize(
    ("seed", "records", "held_out", "message"),
    [
        (-1, 1, 0, "seed"),
        (2**63, 1, 0, "seed"),
        (0, 0, 0, "over 1 to .* records, not 0"),
        (0, MOST_RECORDS + 1, 0, "records"),
        (0, 5, 5, "holding out 5 of 5 records leaves none"),
        (0, 5, -1, "holding out"),
    ],
)
def test_order_that_cannot_be_is_refused(
    seed: int, records: int, held_out: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Order(seed, records, held_out)


@pytest.mark.parametrize(("step", "batch"), [(-1, 4), (0, 0)])
def test_step_that_cannot_be_is_refused(step: int, batch: int) -> None:
    with pytest.raises(ValueError, match=f"step {step} with a batch of {batch}"):
        Order(0, 9).records_at(step, batch)


def test_places_outside_of_what_is_held_out_are_refused() -> None:
    with pytest.raises(IndexError, match="places 0 to 4 of 3 records held out"):
        Order(0, 9, 3).held_out_at(0, 4)


def test_callers_cannot_change_the_order() -> None:
    order = Order(0, 9)
    before = order.records_at(0, 9).tolist()

    order.records_at(0, 9)[:] = 0

    assert order.records_at(0, 9).tolist() == before


def test_order_stays_what_it_was_in_earlier_versions() -> None:
    # Runs are audited by it: a new order needs a new version of the manifest.
    assert json.loads(VECTORS.read_text()) == make_vectors()
