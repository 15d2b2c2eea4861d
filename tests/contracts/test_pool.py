"""The pools that panels are drawn from: dense lists, one per class."""

import brownie
import pytest

from tests.contracts.yard import AUDITOR_BOND, BOND, ENV_CLASS, digest

OTHER_CLASS = digest("other class")


def pool(yard, env_class=ENV_CLASS) -> list:
    return [
        yard.market.poolMember(env_class, index) for index in range(yard.market.poolSize(env_class))
    ]


def places(yard, *members) -> list[int]:
    return [yard.market.worker(member)["poolIndex"] for member in members]


def test_members_stand_in_the_order_of_their_coming(yard):
    """Rule W2: places are counted from one."""
    assert pool(yard) == yard.auditors
    assert places(yard, *yard.auditors) == list(range(1, 13))


def test_workers_without_a_bond_stand_in_no_pool(yard):
    """Rule W2: they have no place."""
    assert places(yard, *yard.workers) == [0, 0, 0, 0]
    assert not set(pool(yard)) & set(yard.workers)


@pytest.mark.parametrize("leaver", [0, 5, 10, 11])
def test_last_member_takes_the_place_of_who_goes(yard, leaver):
    """Rules V6, W3: no place stays empty, and nobody else moves."""
    expected = list(yard.auditors)
    expected[leaver] = expected[-1]
    expected.pop()
    yard.market.retire({"from": yard.auditors[leaver]})

    assert pool(yard) == expected
    assert places(yard, *expected) == list(range(1, 12))
    assert places(yard, yard.auditors[leaver]) == [0]


def test_pool_empties_and_fills_again(yard):
    """Rules W2, W3: whatever the order of coming and going, each member has its own place."""
    for auditor in [*yard.auditors[::2], *yard.auditors[1::2]]:
        yard.market.retire({"from": auditor})
    assert yard.market.poolSize(ENV_CLASS) == 0
    for worker in yard.workers:
        yard.market.addBond(BOND, {"from": worker})

    assert pool(yard) == yard.workers
    assert places(yard, *yard.workers) == [1, 2, 3, 4]


def test_who_was_moved_can_go_too(yard):
    """Rule W3: its place is the new one."""
    yard.market.retire({"from": yard.auditors[0]})
    yard.market.retire({"from": yard.auditors[11]})

    assert pool(yard) == [yard.auditors[10], *yard.auditors[1:10]]


def test_newcomer_stands_behind_the_others(yard):
    """Rules W2, W3: also after somebody went."""
    yard.market.retire({"from": yard.auditors[3]})
    yard.register(yard.challenger, bond=AUDITOR_BOND)

    assert pool(yard)[-1] == yard.challenger
    assert len(pool(yard)) == len(set(pool(yard))) == 12


def test_classes_have_pools_of_their_own(yard):
    """Rules W1, W2: coming and going in one does not show in the other."""
    yard.register(yard.challenger, bond=AUDITOR_BOND, env_class=OTHER_CLASS)
    yard.market.retire({"from": yard.auditors[0]})

    assert pool(yard, OTHER_CLASS) == [yard.challenger]
    assert yard.market.poolSize(ENV_CLASS) == 11
    assert yard.market.poolSize(digest("class of nobody")) == 0


@pytest.mark.parametrize("index", [12, 2**256 - 1])
def test_there_is_nobody_behind_the_last(yard, index):
    """Rule W2: a place that does not exist cannot be read."""
    with brownie.reverts("Index out of range"):
        yard.market.poolMember(ENV_CLASS, index)
