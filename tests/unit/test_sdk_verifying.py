"""Each check of a receipt, with readings that lie in one thing at a time."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from eth_account import Account

import tests.quiet_web3  # noqa: F401
from tests.unit.test_sdk_concluding import ONE, OTHER, WHO, task
from trainyard.chain.blocks import BlockRef
from trainyard.chain.cursor import Seen
from trainyard.chain.reading import Reading
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.errors import RunError
from trainyard.engine.state import State
from trainyard.protocol.draws import draw_segments, panel_seed
from trainyard.protocol.ledger import Event
from trainyard.protocol.ledger.book import Book, Dispute, Seat, Task
from trainyard.protocol.market import OWN_PANEL, DisputeState, Policy, SeatState
from trainyard.sdk import verifying
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import Receipt, receipt_of
from trainyard.sdk.verifying import Check

NUMBER, SEGMENTS, WHEN = 7, 20, 5
CREDITED, POSTED = bytes([1]) * 32, bytes([2]) * 32
OTHERS = "0x" + "cd" * 20


def hash_of(block: int) -> bytes:
    return bytes([block]) * 32


def event(name: str, transaction: bytes = POSTED, **args: Any) -> Seen:
    return Seen(Event(name, {"id": NUMBER, **args}), BlockRef(1, hash_of(1)), 0, transaction)


def drawn(block: int = WHEN) -> list[int]:
    return draw_segments(panel_seed(hash_of(block), NUMBER), SEGMENTS, 2)


def audited(places: list[int], **terms: Any) -> Task:
    """A task whose auditors agree."""
    found = task(Policy.AUDIT, [ONE], **{"segments": SEGMENTS, "audits": 2} | terms)
    found.own_panel.seats += [
        Seat(WHO, one, SeatState.CLOSED, answer=after(one), opened=after(one)) for one in places
    ]
    return found


def after(segment: int) -> bytes:
    """The state that the trace has behind a segment."""
    return bytes([100 + segment]) * 32


RUN = cast(ClaimedRun, SimpleNamespace(trace=SimpleNamespace(after=after, segments=SEGMENTS)))


# Draws


SUBMITTED = event("TaskSubmitted", drawBlock=WHEN)
LATER = event("DrawPostponed", drawBlock=9, segment=OWN_PANEL)
OF_REFEREES = event("DrawPostponed", drawBlock=9, segment=3)
NOBODYS = Seen(
    Event("TaskSubmitted", {"id": 8, "drawBlock": 9}), BlockRef(1, hash_of(1)), 1, POSTED
)


@pytest.mark.parametrize(
    ("segments", "terms", "events", "is_right"),
    [
        (drawn(), {}, [SUBMITTED], True),
        (drawn()[:1], {}, [SUBMITTED], True),
        (drawn(9), {}, [SUBMITTED, LATER], True),
        (drawn(), {}, [SUBMITTED, OF_REFEREES, NOBODYS], True),
        ([], {}, [SUBMITTED], True),
        # Of another block, in another order, one that was not drawn, and none at all.
        (drawn(), {}, [SUBMITTED, LATER], False),
        (drawn()[::-1], {}, [SUBMITTED], False),
        ([drawn()[0], drawn()[1] - 1], {}, [SUBMITTED], False),
        ([], {"min_audits": 1}, [SUBMITTED], False),
    ],
)
def test_segments_have_to_be_those_that_the_block_draws(
    segments: list[int], terms: dict[str, int], events: list[Seen], is_right: bool
) -> None:
    book = SimpleNamespace(tasks={NUMBER: audited(segments, **terms)})
    reading = cast(Reading, SimpleNamespace(book=book, events=events))

    def header(method: str, block: str, full: bool) -> dict[str, str]:
        assert (method, full) == ("eth_getBlockByNumber", False)
        return {"hash": f"0x{hash_of(int(block, 16)).hex()}"}

    market = cast(Market, SimpleNamespace(endpoints=SimpleNamespace(call=header)))

    assert verifying._draw(market, reading, NUMBER).is_right is is_right


# Transactions


SIGNER = Account.from_key("11" * 32)
SIGNED = SIGNER.sign_transaction(
    {
        "type": 2,
        "chainId": 5,
        "nonce": 3,
        "to": bytes.fromhex(OTHERS[2:]),
        "value": 9,
        "gas": 21_000,
        "maxFeePerGas": 7,
        "maxPriorityFeePerGas": 1,
        "data": "0x",
    }
)
SHOWN = {
    "type": "0x2",
    "chainId": "0x5",
    "nonce": "0x3",
    "to": OTHERS,
    "value": "0x9",
    "gas": "0x5208",
    "maxFeePerGas": "0x7",
    "maxPriorityFeePerGas": "0x1",
    "input": "0x",
    "accessList": [],
    "from": SIGNER.address,
    "v": hex(SIGNED.v),
    "r": hex(SIGNED.r),
    "s": hex(SIGNED.s),
}
MINED = {"status": "0x1"}


@pytest.mark.parametrize(
    ("shown", "mined", "why"),
    [
        (SHOWN, MINED, None),
        (None, MINED, "is not in the chain"),
        (SHOWN, None, "is not in the chain"),
        (SHOWN, {"status": "0x0"}, "is not in the chain, or went wrong"),
        (SHOWN, {}, "is not in the chain, or went wrong"),
        (SHOWN | {"value": "0xa"}, MINED, "its bytes have another hash"),
        (SHOWN | {"s": hex(SIGNED.s ^ 1)}, MINED, "its bytes have another hash"),
        (SHOWN | {"type": "0x0"}, MINED, "cannot be checked here"),
        (SHOWN | {"to": "0x12"}, MINED, "it is no transaction"),
        (SHOWN | {"from": OTHERS}, MINED, f"is signed by {SIGNER.address}, not by its sender"),
    ],
)
def test_transactions_have_to_be_mined_and_signed_by_their_senders(
    shown: dict[str, Any] | None, mined: dict[str, Any] | None, why: str | None
) -> None:
    answers = {"eth_getTransactionByHash": shown, "eth_getTransactionReceipt": mined}
    endpoints = SimpleNamespace(call=lambda method, name: answers[method])
    receipt = SimpleNamespace(transactions=[f"0x{SIGNED.hash.hex().removeprefix('0x')}"])

    found = verifying._transactions(
        cast(Market, SimpleNamespace(endpoints=endpoints)), cast(Receipt, receipt)
    )

    assert found.is_right is (why is None)
    assert (why or "1 transaction of 1 account, all signed") in found.message


# The chain


def reading_of() -> Reading:
    found = audited([1, 5])
    found.disputes[3] = Dispute(state=DisputeState.UPHELD)
    credited = event("Credited", CREDITED, account=WHO, amount=7)
    return Reading(Book(tasks={NUMBER: found}), (SUBMITTED, credited), cast(Any, None))


def receipt(**other: Any) -> Receipt:
    """What the reading says, but for one thing."""
    there = reading_of()
    found = receipt_of(there.events, there.book, NUMBER, chain_id=5, market=OTHERS, start_block=1)
    return found.model_copy(update=other)


LIES: dict[str, Any] = {
    "requester": OTHERS,
    "outcome": "settled",
    "failure": "no_quorum",
    "policy": "replicate",
    "manifest": f"0x{'ab' * 32}",
    "environment_class": f"0x{'ab' * 32}",
    "segments": 19,
    "result": None,
    "root": f"0x{'ab' * 32}",
    "workers": (OTHERS,),
    "audits": receipt().audits[:1],
    "disputes": (),
    "escrow_wei": "1",
    "credited_wei": {WHO: "8"},
    "transactions": receipt().transactions[:1],
}
# They say which market and task is meant, are told by a check of their own, or are what is signed.
ELSEWHERE = {"version", "chain_id", "market", "start_block", "task", "state", "signature"}


def test_every_field_of_a_receipt_is_lied_about() -> None:
    assert set(LIES) | ELSEWHERE == set(Receipt.model_fields)


@pytest.mark.parametrize("name", [None, *LIES])
def test_what_the_chain_has_otherwise_is_named(name: str | None) -> None:
    said = receipt() if name is None else receipt(**{name: LIES[name]})

    found = verifying._chain(cast(Market, None), said, reading_of())

    wrong = f"the chain says otherwise about: {name}"
    assert (found.is_right, found.message) == (
        (True, "2 events say the same, open") if name is None else (False, wrong)
    )


# What it was found right by


def seat(segment: int, answer: bytes, opened: bytes) -> Callable[[Task], None]:
    def change(found: Task) -> None:
        [one] = [one for one in found.own_panel.seats if one.segment == segment]
        one.answer, one.opened = answer, opened

    return change


def upheld(found: Task) -> None:
    seat(1, b"x" * 32, after(1))(found)
    found.disputes[1] = Dispute(state=DisputeState.UPHELD)


def rejected(found: Task) -> None:
    seat(1, b"x" * 32, after(1))(found)
    found.disputes[1] = Dispute(state=DisputeState.REJECTED)


@pytest.mark.parametrize(
    ("change", "min_audits", "is_right", "message"),
    [
        (lambda _: None, 2, True, "2 of 2 audits agree"),
        (rejected, 1, True, "1 of 2 audits agree"),
        (rejected, 2, False, "1 of 2 audits agree"),
        (upheld, 1, False, "referees found segment 1 to be wrong"),
        (seat(5, b"x" * 32, b"x" * 32), 1, False, "segment 5: another state was opened"),
        # Who never answered, and for whom nothing was opened, agrees with nobody.
        (seat(5, bytes(32), bytes(32)), 2, False, "1 of 2 audits agree"),
        (seat(5, bytes(32), after(5)), 2, False, "1 of 2 audits agree"),
    ],
)
def test_audits_have_to_be_of_this_trace_and_to_agree(
    change: Callable[[Task], None], min_audits: int, is_right: bool, message: str
) -> None:
    found = audited([1, 5], min_audits=min_audits)
    change(found)

    check = verifying._audits(RUN, found)

    assert (check.is_right, message in check.message) == (is_right, True), check


@pytest.mark.parametrize(("quorum", "is_right"), [(2, True), (3, False)])
def test_as_many_copies_have_to_agree_as_were_asked_for(quorum: int, is_right: bool) -> None:
    found = task(Policy.REPLICATE, [ONE, OTHER, ONE, None], quorum=quorum)

    assert verifying._copies(found).is_right is is_right


@pytest.mark.parametrize(
    ("scores", "is_right"),
    [((950_000, 910_000, 100), True), ((950_000, 100, 100), False), ((), False)],
)
def test_the_median_of_scores_has_to_reach_the_target(
    scores: tuple[int, ...], is_right: bool
) -> None:
    found = task(Policy.SCORE, [ONE], target=900_000)
    found.own_panel.seats += [Seat(WHO, 0, scores=(one,)) for one in scores]

    assert verifying._scores(found).is_right is is_right


# The trace


@pytest.mark.parametrize(
    ("agreed", "state", "kept", "why"),
    [
        (SEGMENTS, None, True, ""),
        (SEGMENTS, "own", True, ""),
        (SEGMENTS - 1, None, True, "not those agreed"),
        (SEGMENTS, f"0x{'ab' * 32}", True, "ends with another state than the receipt names"),
        (SEGMENTS, None, False, "the last state cannot be read"),
    ],
)
def test_the_trace_has_to_end_with_the_state_that_was_taken(
    tmp_path: Path, agreed: int, state: str | None, kept: bool, why: str
) -> None:
    path, last = tmp_path / "state", State({})
    if kept:
        last.save(path)
    run = SimpleNamespace(
        trace=RUN.trace, last=SEGMENTS, published=SimpleNamespace(state=lambda number: path)
    )
    said = receipt(state=f"0x{last.hash.hex()}" if state == "own" else state)

    found = verifying._trace(cast(ClaimedRun, run), audited([1], segments=agreed), said)

    assert (found.is_right, why in found.message) == (not why, True), found


# Computed again


_CID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
NAMED = SimpleNamespace(manifest="m", root="r", run=f"ipfs://{_CID}")
MARKET = cast(Market, SimpleNamespace(content=None, confinement=lambda: None))
CLAIMED = cast(ClaimedRun, SimpleNamespace(trace=RUN.trace, result=NAMED))


def audit(agrees: bool, is_open: bool = False) -> Any:
    verdicts = [SimpleNamespace(segment=4, agrees=agrees)]
    return SimpleNamespace(agrees=agrees, is_open=is_open, verdicts=verdicts)


def score(agrees: bool, is_credible: bool, accuracy: float) -> Any:
    found = SimpleNamespace(figures=SimpleNamespace(loss=0.1, metrics={"accuracy": accuracy}))
    return SimpleNamespace(found=found, agrees=agrees, is_credible=is_credible)


def asked_for(monkeypatch: pytest.MonkeyPatch, name: str, found: Any) -> None:
    """Instead of computing anything again."""

    def computed(*_: Any, **given: Any) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(verifying, name, computed)


@pytest.mark.parametrize(
    ("found", "is_right", "is_proven", "message"),
    [
        (audit(True), True, True, "come out as claimed, bit by bit"),
        (audit(False), False, True, "segments [4] do not come out as claimed"),
        (audit(False, is_open=True), False, False, "proves nothing"),
        (RunError("no room"), False, True, "cannot be computed here: no room"),
    ],
)
def test_segments_have_to_come_out_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    found: Any,
    is_right: bool,
    is_proven: bool,
    message: str,
) -> None:
    asked_for(monkeypatch, "audit_result", found)

    check: Check = verifying._replay(MARKET, CLAIMED, 3, tmp_path)

    assert (check.is_right, check.is_proven) == (is_right, is_proven)
    assert message in check.message


@pytest.mark.parametrize(
    ("found", "is_right", "message"),
    [
        (score(True, True, 0.95), True, "bit by bit"),
        (score(False, True, 0.95), True, "as near as machines are"),
        (score(True, True, 0.85), False, "comes out otherwise: 0.85"),
        (score(False, False, 0.95), False, "comes out otherwise"),
        (SimpleNamespace(found=None, reason="no weights"), False, "has no score: no weights"),
        (RunError("no room"), False, "cannot be computed here: no room"),
    ],
)
def test_the_score_has_to_come_out_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Any, is_right: bool, message: str
) -> None:
    asked_for(monkeypatch, "audit_score_of_result", found)
    wanted = task(Policy.SCORE, [ONE], target=900_000)

    check = verifying._score_again(MARKET, CLAIMED, wanted, tmp_path)

    assert (check.is_right, message in check.message) == (is_right, True), check
