"""Terms with good defaults, from what a market has."""

from typing import Any

import pytest

from trainyard.protocol.ledger.book import Book, Slot, Task, Worker
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Params, Policy, TaskState, Terms
from trainyard.protocol.offering import (
    DEVNET_WINDOWS,
    HALF,
    OfferError,
    Supply,
    Wish,
    best_supply,
    detection_words,
    likely_cost,
    supplies_of,
    terms_for,
    too_few,
    warnings_of,
)

ETHER = 10**18
CLASS, OTHER = b"\x01" * 32, b"\x02" * 32
PARAMS = Params(
    seat_bond=ETHER // 10,
    unbond_for=60,
    fault_bps=2_000,
    finder_bps=5_000,
    requester_bps=3_000,
    referees=3,
    escalation=5,
    draw_delay=1,
    min_window=1,
)


def manifest(**training: Any) -> Manifest:
    source = {
        "kind": "npz",
        "path": "ipfs://bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "records": 1_000,
        "features": {
            "x": {"dtype": "float32", "shape": [2]},
            "y": {"dtype": "int64", "shape": []},
        },
        "inputs": ["x"],
        "target": "y",
    }
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "x", "shape": [2]}],
                "layers": [{"name": "out", "type": "Dense", "units": 2}],
                "outputs": ["out"],
            },
            "data": {"train": source},
            "training": {
                "batch": 10,
                "until": {"epochs": 1},
                "steps_per_segment": 10,
                "seed": 1,
                "optimizer": {"type": "SGD", "learning_rate": 0.1},
                "loss": {"type": "SparseCategoricalCrossentropy"},
                **training,
            },
        }
    )


def terms(wish: Wish, supply: Supply | None = None, **training: Any) -> Terms:
    return terms_for(manifest(**training), supply or Supply(CLASS), PARAMS, wish, DEVNET_WINDOWS)


def test_without_a_wish_two_audits_watch_over_the_usual_reward() -> None:
    found = terms(Wish())

    assert (found.policy, found.slots, found.audits, found.segments) == (Policy.AUDIT, 1, 2, 10)
    assert (found.reward, found.audit_fee) == (ETHER // 10, ETHER // 100)
    assert found.escrow == likely_cost(found) == ETHER // 10 + 2 * ETHER // 100
    assert found.challenge_for == DEVNET_WINDOWS["challenge_for"]
    assert found.env_class == CLASS


def test_the_reward_is_what_others_pay_unless_it_is_said() -> None:
    supply = Supply(CLASS, rewards=(9, 5, 7))

    assert terms(Wish(), supply).reward == 7
    assert terms(Wish(reward=3), supply).reward == 3


def test_who_cooperates_has_the_manifests_slots_and_who_replicates_its_own() -> None:
    assert terms(Wish(), mode="sync", workers=2).slots == 2
    replicated = terms(Wish(policy=Policy.REPLICATE, slots=5))
    assert (replicated.slots, replicated.quorum, replicated.audits) == (5, 3, 0)


def test_too_many_slots_are_refused() -> None:
    with pytest.raises(OfferError, match="at most 32 slots, and 33"):
        terms(Wish(policy=Policy.REPLICATE, slots=33))


def test_rounds_of_one_worker_are_refused() -> None:
    """It would wait for somebody to merge with."""
    with pytest.raises(OfferError, match="use mode 'single', or more"):
        terms(Wish(), mode="rounds", workers=1, steps_per_segment=2, rounds={"local_steps": 2})


def test_the_fee_is_one_that_bonds_cover() -> None:
    found = terms(Wish(reward=100 * ETHER))

    assert PARAMS.referee_cost(found.audit_fee) <= PARAMS.seat_bond
    assert warnings_of(found, Supply(CLASS, workers=3, free=1, auditors=2), PARAMS) == []


@pytest.mark.parametrize("wish", [Wish(reward=1), Wish(audits=0), Wish(policy=Policy.SCORE)])
def test_the_fee_is_one_for_which_a_seat_is_lent(wish: Wish) -> None:
    """Also where nobody is drawn: referees of a challenge get it."""
    found = terms(wish)

    assert found.audit_fee * 100 >= PARAMS.seat_bond
    assert found.stake * found.quorum >= PARAMS.referee_cost(found.audit_fee)


def test_warnings_name_what_is_missing() -> None:
    found = warnings_of(terms(Wish(audits=0)), Supply(CLASS, rewards=(ETHER,)), PARAMS)

    assert [one.split(":")[0][:30] for one in found] == [
        "0 workers of this class are fr",
        "without audits nobody checks t",
        "the reward is less than half o",
    ]


def test_nobody_audits_what_it_trains() -> None:
    found = terms(Wish(), mode="sync", workers=2)
    three, four = (Supply(CLASS, workers=n, free=n, auditors=n) for n in (3, 4))

    [said] = warnings_of(found, three, PARAMS)

    assert said.startswith("2 workers and 2 auditors are needed, all of them different, and 3 are")
    assert warnings_of(found, four, PARAMS) == []
    assert too_few(terms(Wish(policy=Policy.REPLICATE)), three) is None


def test_detection_in_words() -> None:
    assert detection_words(terms(Wish()), HALF, "half") == (
        "2 audits find a worker that fakes half of its work 71 times in 100"
    )


def test_a_book_tells_who_is_free_and_what_is_paid() -> None:
    book = Book()
    for number, env_class in enumerate([CLASS, CLASS, OTHER]):
        book.workers[f"w{number}"] = Worker(env_class, b"", pool_index=number)
    for number, state in enumerate([TaskState.RUNNING, TaskState.SETTLED, TaskState.CANCELLED], 1):
        offered = Terms(
            manifest=b"", env_class=CLASS, policy=Policy.AUDIT, reward=10 * number, stake=0
        )
        task = Task("me", 0, offered, 0, state, slots=[Slot("w0")], joined=1)
        book.tasks[number] = task

    found = supplies_of(book)

    assert found[CLASS] == Supply(CLASS, workers=2, free=1, auditors=1, rewards=(20, 10))
    assert found[OTHER] == Supply(OTHER, workers=1, free=1, auditors=1)
    assert best_supply(found.values()) in (found[CLASS], found[OTHER])
    assert best_supply([Supply(CLASS)]) is None
