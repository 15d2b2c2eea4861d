"""What is done about what was found wrong: by a worker that did not sign for it, or an auditor."""

from dataclasses import replace
from typing import Any

import pytest

from tests.agent.books import (
    CLAIM,
    MARKET,
    ME,
    NOW,
    OWN,
    PEER,
    STAKE,
    TRACE,
    TRAINED,
    answering,
    seated,
    situation,
    task,
)
from trainyard.chain.calls import MarketCalls
from trainyard.devnet.options import DEVNET_PARAMS
from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Account, Dispute, Task
from trainyard.protocol.market import DisputeState, SeatState, TaskState
from trainyard.protocol.trace import Trace
from worker_agent.actions import Hurry, LookBehind, Send
from worker_agent.deciding import decide
from worker_agent.progress import NONE, Progress, Wrong
from worker_agent.situation import Situation

CALLS = MarketCalls(MARKET.address)
BOND = DEVNET_PARAMS.seat_bond
SEGMENT = 3
DISSENTING = replace(TRAINED, claim=None, trace=None, wrong=Wrong(SEGMENT, TRACE))
OTHER_RUN = Claim.of(b"r" * 32, Trace([b"o" * 32] * 9).root)


def signed_by_peer(
    state: TaskState = TaskState.WINDOW, claim: Claim = CLAIM, **changes: Any
) -> Task:
    """A joint task that only the peer has answered, and whose time to be challenged has begun."""
    found = task(state, workers=(PEER, ME))
    theirs = replace(found.slots[0], claim=claim)
    mine = replace(found.slots[1], claim=None, digest=bytes(32))
    return replace(found, slots=[theirs, mine], answered=1, **changes)


def seen(found: Task, *, credit: int = BOND, **changes: Any) -> Situation:
    s = situation(found, DISSENTING, **changes)
    s.book.params.append(DEVNET_PARAMS)
    s.book.accounts[ME] = Account(credit=credit)
    return s


def accusations(s: Situation) -> list[Send]:
    named = ("1/accuse", "1/challenge")
    return [one for one in decide(s) if isinstance(one, Send) and one.key.startswith(named)]


def test_what_others_signed_for_is_challenged_with_its_proof() -> None:
    found = signed_by_peer()

    [challenge] = accusations(seen(found))

    state, proof = TRACE.after(SEGMENT), TRACE.proof_after(SEGMENT)
    assert challenge.call == CALLS.challenge(1, SEGMENT, CLAIM, state, proof)
    assert (challenge.key, challenge.by) == (f"1/challenge/{SEGMENT}", found.deadline)


def test_what_is_missing_of_the_bond_is_put_in_first_and_nothing_else_is_paid_for() -> None:
    s = seen(signed_by_peer(), credit=BOND - 7)

    [deposit] = accusations(s)

    assert deposit.call == CALLS.deposit(7, value=7)
    assert [one for one in decide(s) if isinstance(one, Send) and one.call.value] == [deposit]


def test_two_frauds_are_not_challenged_with_the_same_bond() -> None:
    s = seen(signed_by_peer(), credit=BOND, purse=0)
    s.book.tasks[2] = signed_by_peer()
    s = replace(s, progress={1: DISSENTING, 2: DISSENTING})
    staked = [one for one in decide(s) if isinstance(one, Send) and one.stakes]
    assert [one.key for one in staked] == [f"1/challenge/{SEGMENT}"]

    # Until the first is mined its bond is spent, and a second one is put in if it is there.
    pending = {one.key: one.call for one in staked}
    assert [one for one in decide(replace(s, pending=pending)) if isinstance(one, Send)] == []
    rich = replace(s, pending=pending, purse=BOND)
    [deposit] = [one for one in decide(rich) if isinstance(one, Send)]
    assert (deposit.key, deposit.call) == (
        f"2/accuse/deposit/{SEGMENT}",
        CALLS.deposit(BOND, value=BOND),
    )


@pytest.mark.parametrize("key", [f"1/accuse/deposit/{SEGMENT}", f"1/challenge/{SEGMENT}#2"])
def test_what_is_under_way_is_hurried_and_not_paid_for_twice(key: str) -> None:
    found = signed_by_peer()
    s = seen(found, credit=0, purse=STAKE, pending={key: CALLS.deposit(7, value=7)})
    assert accusations(s) == []
    assert Hurry(key, found.deadline) in decide(s)


@pytest.mark.parametrize(
    "s",
    [
        seen(signed_by_peer(), credit=0, purse=BOND - 1),
        seen(signed_by_peer(TaskState.AUDITING)),
        seen(signed_by_peer(disputes={SEGMENT: Dispute(state=DisputeState.REJECTED)})),
        seen(signed_by_peer(), now=NOW + 480, margin_s=30.0),
        seen(signed_by_peer(claim=OTHER_RUN)),
    ],
    ids=["no bond", "too early", "disputed already", "too late", "another run"],
)
def test_nobody_is_accused_in_vain(s: Situation) -> None:
    assert accusations(s) == []


def test_who_found_nothing_wrong_accuses_nobody() -> None:
    s = replace(seen(signed_by_peer()), progress={1: replace(DISSENTING, wrong=None)}, purse=STAKE)

    assert accusations(s) == []


# As auditor of a segment after the end of a run

IDLE = replace(answering(TRACE.after(2)).answers[(*OWN, 0)], is_idle=True)
AUDITING = replace(NONE, answers={(*OWN, 0): IDLE})


def looks(progress: Progress, **changes: Any) -> list[LookBehind]:
    window = seated(task(TaskState.WINDOW, workers=(PEER,)), ME, SeatState.REVEALED)
    s = situation(window, progress, **changes)
    s.book.params.append(DEVNET_PARAMS)
    return [one for one in decide(s) if isinstance(one, LookBehind)]


def test_who_was_drawn_after_the_end_of_a_run_looks_behind_it_once() -> None:
    assert looks(AUDITING) == [LookBehind(1, 2)]
    assert looks(replace(AUDITING, has_looked=True)) == []


def test_what_changes_something_needs_no_second_look() -> None:
    busy = replace(NONE, answers={(*OWN, 0): replace(IDLE, is_idle=False)})

    assert looks(busy) == []
    # Nor is there one that could not be acted upon, or that another class of machine would take.
    assert looks(AUDITING, now=NOW + 480, margin_s=30.0) == []
    assert looks(AUDITING, env_class=b"o" * 32) == []
