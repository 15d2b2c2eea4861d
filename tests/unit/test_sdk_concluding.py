"""How a settled task was found to be right, by each way to verify."""

from typing import Any

from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Seat, Slot, Task
from trainyard.protocol.market import Policy, SeatState, Terms
from trainyard.sdk.concluding import conclusion, copies_of, how_checked, score_of

ETHER = 10**18
ONE, OTHER = Claim(b"1" * 32, b"2" * 32), Claim(b"3" * 32, b"4" * 32)
WHO = "0x" + "ab" * 20


def task(policy: Policy, claims: list[Claim | None], **terms: Any) -> Task:
    given: dict[str, Any] = {
        "manifest": bytes(32),
        "env_class": bytes(32),
        "policy": policy,
        "slots": len(claims),
        "quorum": 1,
        "reward": ETHER,
        "stake": ETHER,
        "audit_fee": 0,
        "segments": 0,
        "join_for": 1,
        "train_for": 1,
        "audit_for": 1,
        "answer_for": 1,
        "challenge_for": 1,
    }
    found = Task(WHO, 1, Terms(**given | terms), 0)
    found.slots = [Slot(WHO, claim=claim) for claim in claims]
    return found


def test_audits_that_agree_are_counted() -> None:
    found = task(Policy.AUDIT, [ONE])
    assert how_checked(found) == "no audits"
    found.own_panel.seats += [
        Seat(WHO, 3, answer=b"a" * 32, opened=b"a" * 32),
        Seat(WHO, 7, answer=b"b" * 32, opened=b"a" * 32),
    ]

    assert how_checked(found) == "1 of 2 audits agree"
    # Who was drawn and never answered agrees with nobody.
    found.own_panel.seats.append(Seat(WHO, 9, SeatState.CLOSED))
    assert how_checked(found) == "1 of 3 audits agree"
    found.own_panel.seats.pop()
    assert conclusion(5, found, "bafy") == (
        "task 5 is settled: 1 of 2 audits agree, 1 ETH were locked; the result is bafy"
    )


def test_copies_are_those_of_the_claim_that_leads() -> None:
    found = task(Policy.REPLICATE, [OTHER, ONE, None, ONE])
    found.lead = 1

    assert copies_of(found) == 2
    assert how_checked(found) == "2 of 4 trained the same, each alone"


def test_the_median_of_scores_counts() -> None:
    found = task(Policy.SCORE, [ONE, ONE], target=900_000)
    assert score_of(found) is None
    found.own_panel.seats += [
        Seat(WHO, 0, scores=(950_000,)),
        Seat(WHO, 0),
        Seat(WHO, 0, scores=(910_000,)),
        Seat(WHO, 0, scores=(990_000,)),
    ]

    assert score_of(found) == 0.95
    assert how_checked(found) == ("3 evaluators found a score of 0.95, and 0.9 was asked for")


def test_in_a_contest_the_best_entry_has_its_own_scores() -> None:
    found = task(Policy.CONTEST, [ONE, OTHER])
    found.lead = 1
    found.own_panel.seats += [Seat(WHO, 0, scores=(100_000, 700_000))]

    assert score_of(found) == 0.7
