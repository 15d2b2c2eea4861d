"""join: who may hold a slot, and when."""

import pytest

from tests.contracts.allow_list import AllowList, leaf
from tests.contracts.crew import full_crew, lose
from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import CREDIT, ENV_CLASS, STAKE, digest, event, reverts
from trainyard.protocol.market import Policy, TaskState

EACH_POLICY = pytest.mark.parametrize("policy", list(Policy))
RECOMPUTED = pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.AUDIT])
SCORED = pytest.mark.parametrize("policy", [Policy.SCORE, Policy.CONTEST])


def join(yard, task, worker, proof=(), value=0):
    return yard.market.join(task, digest("card"), list(proof), {"from": worker, "value": value})


@EACH_POLICY
def test_stake_is_locked(yard, policy):
    """Rules T3, V6: it leaves the worker's credit for the task's lock."""
    task = yard.post(policy, slots=2)
    escrow = yard.market.task(task)["locked"]
    before = credits_of_all(yard)

    tx = join(yard, task, yard.workers[0])

    assert gains(yard, before) == {yard.workers[0]: -STAKE}
    assert yard.market.task(task)["locked"] == escrow + STAKE
    assert event(tx, "SlotJoined") == {
        "id": task,
        "worker": yard.workers[0],
        "slot": 0,
        "peerCard": "0x" + digest("card").hex(),
    }


@pytest.mark.parametrize("slots", [1, 3, 4])
def test_last_join_starts_the_task(yard, slots):
    """Rule T3: the time to train runs from then on."""
    task = yard.post(slots=slots)
    yard.join(task, *yard.workers[: slots - 1])
    assert yard.state(task) == TaskState.OPEN

    tx = join(yard, task, yard.workers[slots - 1])

    train_by = tx.timestamp + yard.terms().train_for
    assert event(tx, "TaskStarted") == {"id": task, "trainBy": train_by}
    assert yard.state(task) == TaskState.RUNNING
    assert yard.market.task(task)["deadline"] == train_by
    assert yard.market.task(task)["joined"] == 2**slots - 1


def test_two_and_thirty_slots_can_be_filled(yard):
    """Rule T3: the most that a task can have."""
    crew = full_crew(yard)
    task = yard.post(slots=32, reward=1)

    yard.join(task, *crew)

    assert yard.state(task) == TaskState.RUNNING
    assert yard.market.task(task)["joined"] == 2**32 - 1
    assert yard.market.slot(task, 31)["worker"] == crew[31]


def test_value_is_credited_first_and_the_rest_stays(yard):
    """Rule V7: a deposit rides along with the join."""
    task = yard.post(slots=2)
    yard.register(yard.stranger)
    before = credits_of_all(yard)

    tx = join(yard, task, yard.stranger, value=STAKE + 5)

    assert gains(yard, before) == {yard.stranger: 5}
    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": STAKE + 5}


def test_one_wei_short_is_refused(yard):
    """Rules T3, V2: nobody stakes what it does not have."""
    task = yard.post(slots=2)
    yard.register(yard.stranger)

    with reverts("MarketInsufficientCredit", yard.stranger, STAKE - 1, STAKE):
        join(yard, task, yard.stranger, value=STAKE - 1)


def test_last_wei_of_credit_is_enough(yard):
    """Rules T3, V2: exactly the stake is needed."""
    task = yard.post(stake=CREDIT, slots=2)

    join(yard, task, yard.workers[0])

    assert yard.credit(yard.workers[0]) == 0


@EACH_POLICY
def test_requester_is_refused(yard, policy):
    """Rule T3: nobody works on a task of its own."""
    task = yard.post(policy)
    yard.register(yard.requester)

    with reverts("MarketConflict", task, yard.requester):
        join(yard, task, yard.requester)


@EACH_POLICY
def test_second_slot_is_refused(yard, policy):
    """Rule T3: one slot per account."""
    task = yard.post(policy, slots=3)
    yard.join(task, yard.workers[0])

    with reverts("MarketConflict", task, yard.workers[0]):
        join(yard, task, yard.workers[0])


@EACH_POLICY
def test_stranger_is_refused(yard, policy):
    """Rules T3, W1: only registered workers join."""
    task = yard.post(policy)

    with reverts("MarketNotRegistered", yard.stranger):
        join(yard, task, yard.stranger)


@EACH_POLICY
def test_retired_worker_is_refused(yard, policy):
    """Rules W1, W3: retiring takes a worker out of the register at once."""
    task = yard.post(policy)
    yard.market.retire({"from": yard.workers[0]})

    with reverts("MarketNotRegistered", yard.workers[0]):
        join(yard, task, yard.workers[0])


@RECOMPUTED
def test_worker_of_another_class_is_refused(yard, policy):
    """Rule T3: its bits would differ."""
    task = yard.post(policy)
    other = digest("other class")
    yard.register(yard.stranger, env_class=other)

    with reverts("MarketWrongClass", yard.stranger, other, ENV_CLASS):
        join(yard, task, yard.stranger, value=STAKE)


@SCORED
def test_scores_ask_for_no_class(yard, policy):
    """Rule T3: what is measured may come from any machine."""
    task = yard.post(policy)
    yard.register(yard.stranger, env_class=digest("other class"))

    join(yard, task, yard.stranger, value=STAKE)

    assert yard.market.slot(task, 0)["worker"] == yard.stranger


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_each_name_of_the_allow_list_may_join(yard, length):
    """Rule T3: with the proof of its own place in the list."""
    listed = yard.workers[:length]
    names = AllowList([worker.address for worker in listed])
    task = yard.post(slots=length, allow_list=names.root)

    for worker in listed:
        join(yard, task, worker, names.proof(worker.address))

    assert yard.market.task(task)["joined"] == 2**length - 1


def test_others_are_refused_with_any_proof(yard):
    """Rule T3: none, that of another, or a node in place of a leaf."""
    names = AllowList([worker.address for worker in yard.workers[:3]])
    task = yard.post(slots=3, allow_list=names.root)
    proof = names.proof(yard.workers[0].address)

    for tried in ([], proof, proof[:1], [*proof, leaf(yard.workers[0].address)]):
        with reverts("MarketNotAllowed", task, yard.workers[3]):
            join(yard, task, yard.workers[3], tried)


def test_listed_worker_without_its_proof_is_refused(yard):
    """Rule T3: the market knows only the list's root."""
    names = AllowList([worker.address for worker in yard.workers[:2]])
    task = yard.post(slots=2, allow_list=names.root)

    with reverts("MarketNotAllowed", task, yard.workers[0]):
        join(yard, task, yard.workers[0], names.proof(yard.workers[1].address))


def test_proof_is_not_asked_for_without_a_list(yard):
    """Rule T3: an empty list is open to all."""
    task = yard.post(slots=2)

    join(yard, task, yard.workers[0], [digest("whatever")])

    assert yard.market.task(task)["joined"] == 0b01


def test_short_record_is_refused(yard):
    """Rules T3, W4: the requester asked for settled tasks."""
    settle_one(yard, yard.workers[0])
    task = yard.post(min_settled=2)

    with reverts("MarketRecordTooShort", yard.workers[0], 1, 2):
        join(yard, task, yard.workers[0])


def test_long_enough_record_will_do(yard):
    """Rules T3, W4: settled tasks are counted."""
    settle_one(yard, yard.workers[0])
    task = yard.post(min_settled=1)

    join(yard, task, yard.workers[0])

    assert yard.state(task) == TaskState.RUNNING


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_open_until_join_by(yard, offset):
    """Rules C1, T2: refused from the deadline's second on."""
    task = yard.post(slots=2)
    join_by = yard.market.task(task)["deadline"]
    yard.at(join_by + offset)

    if offset < 0:
        join(yard, task, yard.workers[0])
        assert yard.market.task(task)["joined"] == 0b01
    else:
        with reverts("MarketTooLate", task, join_by):
            join(yard, task, yard.workers[0])


def test_full_task_has_no_vacancy(yard):
    """Rule T3: as many workers as slots."""
    task = yard.running(slots=2)

    with reverts("MarketNoVacancy", task):
        join(yard, task, yard.workers[2])


@EACH_POLICY
def test_slot_of_an_evicted_worker_is_free(yard, policy):
    """Rules T5, V6: the replacement stakes and has the time that is left."""
    task = yard.running(policy, slots=3)
    train_by = yard.market.task(task)["deadline"]
    lose(yard, task, 1)
    before = credits_of_all(yard)

    tx = join(yard, task, yard.workers[3])

    assert gains(yard, before) == {yard.workers[3]: -STAKE}
    assert event(tx, "SlotJoined")["slot"] == 1
    assert "TaskStarted" not in tx.events
    assert yard.market.slot(task, 1) == (yard.workers[3], 0, 0, "0x" + "00" * 32)
    assert yard.market.task(task)["deadline"] == train_by
    assert yard.market.task(task)["joined"] == 0b111


def test_evicted_worker_may_come_back(yard):
    """Rules T3, T5: it has paid for its silence."""
    task = yard.running(slots=2)
    lose(yard, task, 0)

    join(yard, task, yard.workers[0])

    assert yard.market.task(task)["joined"] == 0b11


@EACH_POLICY
def test_no_replacement_after_the_first_answer(yard, policy):
    """Rule T5: a latecomer would be paid for the answer of another."""
    task = yard.running(policy, slots=3)
    lose(yard, task, 0)
    if policy in (Policy.AUDIT, Policy.SCORE):
        yard.submit(task, yard.workers[1])
    else:
        yard.commit(task, yard.workers[1])

    with reverts("MarketNoVacancy", task):
        join(yard, task, yard.workers[3])


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_replacement_comes_before_train_by(yard, offset):
    """Rules C1, T5: after that there is nothing left to do."""
    task = yard.running(slots=2)
    lose(yard, task, 0)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        join(yard, task, yard.workers[2])
        assert yard.market.task(task)["joined"] == 0b11
    else:
        with reverts("MarketTooLate", task, train_by):
            join(yard, task, yard.workers[2])


def test_task_that_has_ended_is_refused(yard):
    """Rule T3: nobody stakes on what is over."""
    task = yard.post()
    yard.market.cancel(task, {"from": yard.requester})

    with reverts("MarketUnexpectedState", task, TaskState.CANCELLED):
        join(yard, task, yard.workers[0])


def test_unknown_task_is_refused(yard):
    """Rule T3: nobody stakes on what does not exist."""
    with reverts("MarketUnexpectedState", 99, TaskState.NONE):
        join(yard, 99, yard.workers[0])


def settle_one(yard, worker):
    task = yard.post(Policy.REPLICATE)
    yard.join(task, worker)
    yard.commit(task, worker)
    yard.reveal(task, worker)
    yard.market.settle(task, {"from": yard.stranger})
