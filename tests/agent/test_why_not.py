"""Every reason why a task is passed over, with the change that would mend it."""

from dataclasses import replace
from typing import Any

import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.protocol.commitments import Market
from trainyard.protocol.gas import gas_of
from trainyard.protocol.ledger.book import Account, Book, Slot, Task, Worker
from trainyard.protocol.market import Policy as Kind
from trainyard.protocol.market import TaskState, Terms
from worker_agent.actions import Fetch, MakeCard, Stop
from worker_agent.deciding.offers import Reason, for_offers, why_not
from worker_agent.hindering import Hindrances
from worker_agent.joining import NoPortError
from worker_agent.limits import Limits
from worker_agent.policy import Policy
from worker_agent.postings import marked
from worker_agent.progress import Failure, Fetched, Progress
from worker_agent.situation import Situation

ME, OTHER, REQUESTER = ("0x" + letter * 40 for letter in "abc")
CLASS = b"c" * 32
NOW = 1_000
FETCHED = Fetched("sync", 2, 4, hours=2.0, memory_bytes=100, disk_bytes=200)
TERMS = Terms(
    manifest=b"m" * 32,
    env_class=CLASS,
    policy=Kind.AUDIT,
    slots=2,
    reward=1_000,
    stake=500,
    train_for=20_000,
)
GAS = gas_of(TERMS)


def task(*, slots: list[Slot] | None = None, joined: int = 0, **given: Any) -> Task:
    terms = {k: given.pop(k) for k in list(given) if k in Terms.__dataclass_fields__}
    return Task(
        given.pop("requester", REQUESTER),
        0,
        replace(TERMS, **terms),
        deadline=given.pop("deadline", NOW + 300),
        slots=slots or [Slot(), Slot()],
        joined=joined,
        **given,
    )


def situation(one: Task, **given: Any) -> Situation:
    book = Book(tasks={1: one} | given.pop("others", {}))
    book.workers = given.pop("workers", {ME: Worker(CLASS, b"")})
    book.accounts = {ME: Account(credit=given.pop("credit", 0))}
    values: dict[str, Any] = {
        "me": ME,
        "market": Market(1, "0x" + "1" * 40),
        "book": book,
        "now": NOW,
        "block": 5,
        "clock": 50.0,
        "policy": Policy(),
        "env_class": CLASS,
        "progress": {1: Progress(fetched=FETCHED)},
        "purse": 10_000,
        "salt": lambda *about: bytes(32),
    }
    return Situation(**values | given)


def test_nothing_speaks_against_a_task_that_suits() -> None:
    s = situation(task())
    assert why_not(s, 1) == []
    assert for_offers(s) == [MakeCard(1)]


def test_costs_that_are_just_covered_or_not_minded_are_no_reason() -> None:
    assert why_not(situation(task(reward=GAS * 3), gas_price=3, purse=10**17), 1) == []
    wanted = Policy(at_a_loss=True)
    assert why_not(situation(task(reward=0), gas_price=3, purse=10**17, policy=wanted), 1) == []


OURS = task(slots=[Slot(ME), Slot()], joined=1)


def case(s: Situation, why: str, change: str) -> tuple[Situation, str, str]:
    return s, why, change


CASES = {
    "paused": case(situation(task(), is_paused=True), "paused", "trainyard worker resume"),
    "draining": case(
        situation(task(), is_paused=True, is_draining=True), "drains", "trainyard worker resume"
    ),
    "unserved": case(
        situation(task(), is_served=False), "a relay carries only", "or keep content in a Kubo node"
    ),
    "full": case(
        situation(task(slots=[Slot(OTHER), Slot(OTHER)], joined=3)), "slots are taken", "another"
    ),
    "over": case(situation(task(state=TaskState.SETTLED)), "it is over", "another"),
    "answered": case(
        situation(task(state=TaskState.RUNNING, joined=1, answered=1)), "taken or it is", "another"
    ),
    "own": case(situation(task(requester=ME)), "our own task", "another account"),
    "evicted": case(situation(task(slots=[Slot(ME), Slot()])), "left or were evicted", "another"),
    "unregistered": case(situation(task(), workers={}), "not registered", "wait until"),
    "retired": case(
        situation(task(), workers={ME: Worker(bytes(32), b"")}), "not registered", "wait until"
    ),
    "class": case(
        situation(task(env_class=b"d" * 32)), "environment class 64646464", "machine of that class"
    ),
    "listed": case(situation(task(allow_list=b"l" * 32)), "requester's list", "without a list"),
    "record": case(situation(task(min_settled=2)), "2 settled tasks, and we have 0", "settle 2"),
    "denied": case(
        situation(task(), policy=Policy(deny_requesters=(REQUESTER,))), "denied", "deny_requesters"
    ),
    "not allowed": case(
        situation(task(), policy=Policy(allow_requesters=(OTHER,))),
        "requester is not allowed",
        f"add {REQUESTER} to allow_requesters",
    ),
    "no work": case(
        situation(task(), policy=Policy(concurrency=0)), "concurrency is 0", "set it to 1"
    ),
    "too late": case(situation(task(deadline=NOW + 10)), "time to join is over", "another"),
    "stake": case(
        situation(task(), policy=Policy(max_stake=499)), "at most 499 are", "max_stake=500"
    ),
    "poor": case(situation(task(), purse=100, credit=150), "250 of that are missing", "add funds"),
    "mode": case(
        situation(task(), policy=Policy(modes=("single",))), "mode sync", "add 'sync' to modes"
    ),
    "long": case(
        situation(task(), policy=Policy(max_hours=1.5)), "about 2.00 h", "max_hours = 2.00"
    ),
    "slow": case(situation(task(train_for=3_600)), "1.00 h are left", "a quicker machine"),
    "price": case(
        situation(task(), policy=Policy(min_wei_per_hour=600)),
        "pays 1000 wei for about 2.00 h, and 1200",
        "min_wei_per_hour = 500",
    ),
    "memory": case(
        situation(task(), policy=Policy(max_memory_bytes=99)), "memory", "max_memory_bytes = 100"
    ),
    "disk": case(
        situation(task(), policy=Policy(max_disk_bytes=199)), "disk", "max_disk_bytes = 200"
    ),
    "sandbox": case(
        situation(task(), sandbox=Limits(memory_bytes=99)), "memory", "sandbox.memory_bytes = 100"
    ),
    "both": case(
        situation(task(), policy=Policy(max_disk_bytes=199), sandbox=Limits(disk_bytes=1)),
        "200 bytes of disk",
        "max_disk_bytes = 200 and sandbox.disk_bytes = 200",
    ),
    "gas": case(
        situation(task(reward=GAS * 3 - 1), gas_price=3),
        f"pays {GAS * 3 - 1} wei, and costs about {GAS * 3} of gas and 0 of energy",
        f"gas at 2 wei, which is 3 now, a reward of {GAS * 3} by the requester, or at_a_loss",
    ),
    "energy": case(
        # A kilowatt for an hour, of which the reward pays 999 thousandths.
        situation(
            task(reward=999),
            policy=Policy(energy_wei_per_kwh=1_000),
            progress={1: Progress(fetched=replace(FETCHED, energy_j=3.6e6))},
        ),
        "pays 999 wei, and costs about 0 of gas and 1000 of energy",
        "a reward of 1000 by the requester, or at_a_loss = true",
    ),
    "refused": case(
        situation(task(), progress={1: Progress(refused="its manifest cannot be used: no")}),
        "its manifest cannot be used",
        "post it anew",
    ),
    "not fetched": case(
        situation(
            task(), progress={1: Progress(failures={"fetch": Failure("nobody has it", 2, 57.0)})}
        ),
        "could not be fetched: nobody has it",
        "again in 7 s",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reason_comes_with_its_change(name: str) -> None:
    s, why, change = CASES[name]
    reasons = why_not(s, 1)

    assert any(why in one.why and change in one.change for one in reasons), reasons
    assert not any(isinstance(action, MakeCard) for action in for_offers(s))


def test_task_that_is_not_there_is_named() -> None:
    [reason] = why_not(situation(task()), 7)
    assert reason.why == "there is no task 7"


def test_task_that_we_are_in_is_no_offer() -> None:
    [reason] = why_not(situation(OURS), 1)
    assert reason.why == "we are in it"


def test_task_that_is_not_fetched_yet_is_waited_for() -> None:
    s = situation(task(), progress={})
    [reason] = why_not(s, 1)
    assert "not here yet" in reason.why
    assert for_offers(s) == [Fetch(1)]


def test_a_task_is_judged_by_its_manifest_before_its_data_is_here() -> None:
    foreseen = {1: Progress(fetched=replace(FETCHED, is_whole=False))}
    suits = situation(task(), progress=foreseen)
    assert for_offers(suits) == [Fetch(1)]
    assert "not here yet" in why_not(suits, 1)[0].why

    [stop] = for_offers(situation(task(), progress=foreseen, policy=Policy(max_hours=1)))
    assert isinstance(stop, Stop)
    assert stop.works == ("fetch",)
    assert "about 2.00 h" in stop.reason


def test_data_of_a_task_that_others_took_or_that_has_gone_is_fetched_no_further() -> None:
    foreseen = {1: Progress(fetched=replace(FETCHED, is_whole=False))}
    full = task(slots=[Slot(OTHER), Slot(OTHER)], joined=3)
    for s in (
        situation(full, progress=foreseen),
        situation(task(), progress={2: foreseen[1]}, is_crowded=True),
    ):
        [stop] = for_offers(s)
        assert isinstance(stop, Stop)
    assert for_offers(situation(OURS, progress=foreseen)) == []


def test_tasks_at_once_share_what_the_operator_gives() -> None:
    both = {1: Progress(fetched=FETCHED), 2: Progress(fetched=FETCHED)}
    policy = Policy(concurrency=2, max_memory_bytes=199)
    s = situation(task(), others={2: OURS}, progress=both, policy=policy)
    [reason] = why_not(s, 1)
    assert reason.why == "it needs 100 bytes of memory, beside 100 of other tasks"
    assert reason.change == "max_memory_bytes = 200"


def test_what_could_not_be_fetched_is_fetched_again_in_its_time() -> None:
    failed = {1: Progress(failures={"fetch": Failure("nobody has it", 2, again_at=57.0)})}
    assert for_offers(situation(task(), progress=failed, clock=56.0)) == []
    assert for_offers(situation(task(), progress=failed, clock=57.0)) == [Fetch(1)]


def test_room_is_missing_while_we_work_on_another() -> None:
    """Such a task is fetched ahead, and not joined."""
    s = situation(task(), others={2: OURS}, progress={})
    reason, *_ = why_not(s, 1)
    assert reason.change == "concurrency = 2, or wait until one is over"
    assert for_offers(s) == [Fetch(1)]
    assert for_offers(situation(task(), others={2: OURS})) == []


def test_scored_tasks_are_for_every_class() -> None:
    s = situation(task(env_class=b"d" * 32, policy=Kind.SCORE))
    assert why_not(s, 1) == []


def test_all_reasons_are_told_at_once() -> None:
    policy = Policy(concurrency=0, max_hours=1, max_stake=1, deny_requesters=(REQUESTER,))
    assert len(why_not(situation(task(), policy=policy, is_paused=True), 1)) == 5


def test_join_that_was_given_up_and_a_port_that_is_missing_are_reasons() -> None:
    one = task()
    here = Progress(fetched=FETCHED)
    s = situation(one, others={2: task(reward=2_000)}, progress={1: here, 2: here})
    hindrances = Hindrances()
    hindrances.no_card(2, str(NoPortError("all ports are taken: choose another peers.port")))
    given_up = {marked("1/join/6b", s.book): "8 attempts failed", "3/submit/0@ab": "late"}

    found = replace(s, hindered=hindrances.look(given_up, s.book))

    assert why_not(found, 1) == [
        Reason("joining it was given up: 8 attempts failed", "nothing: take another")
    ]
    assert why_not(found, 2) == [
        Reason("no card can be made: all ports are taken", "choose another peers.port")
    ]
    # Of the task that had the number before nothing is said.
    other = Book(tasks={1: task(reward=1)})
    hindrances.has_card(2)
    assert hindrances.look(given_up, other) == {}


def test_post_that_may_yet_be_taken_back_is_waited_for() -> None:
    s = situation(task(), posted={1: 5}, join_confirmations=2)

    [reason] = why_not(s, 1)

    assert reason.why.startswith("its post lies 1 blocks deep, and chain.join_confirmations asks")
    assert reason.change == "wait for 1 more"
    assert why_not(replace(s, block=6), 1) == []
