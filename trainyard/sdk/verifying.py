"""A receipt checked again from nothing but an RPC endpoint and content.

Nothing that the receipt says is believed: whatever it names is looked up, and what the chain and
the content have is compared with it.
"""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from trainyard.chain.cursor import Seen
from trainyard.chain.reading import Reading
from trainyard.chain.signed import ForgedTransactionError, sender_of
from trainyard.content.names import ContentPath
from trainyard.engine.claims import ClaimedRun, open_claimed
from trainyard.engine.rescoring import audit_score_of_result
from trainyard.engine.results import Asked, audit_result
from trainyard.engine.scoring import is_scored
from trainyard.engine.state import State
from trainyard.protocol.draws import auditable, draw_segments, panel_seed
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import OWN_PANEL, DisputeState, Policy
from trainyard.protocol.results import points
from trainyard.protocol.telling import counted, task_of
from trainyard.sdk.collecting import claim_of
from trainyard.sdk.concluding import audits_of, copies_of, how_checked, score_of, target_of
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import Receipt, receipt_of


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `is_proven` is False where that it is not right proves nothing:
    bits that differ on another class of machine, or a receipt that nobody signed."""

    name: str
    is_right: bool
    message: str
    is_proven: bool = True


def verify(market: Market, receipt: Receipt, *, replay: int = 0) -> Iterator[Check]:
    """All checks, one after the other; those that need what an earlier one did not find are left
    out. With `replay`, so many segments drawn here are computed again in the sandbox; of a run
    that cannot be replayed, its score."""
    yield _signature(receipt)
    yield from _place(market, receipt)
    reading = market.read()
    task = reading.book.tasks.get(receipt.task)
    if task is None:
        yield Check("chain", False, f"there is no task {receipt.task} on this market")
        return
    yield _chain(market, receipt, reading)
    yield _transactions(market, receipt)
    if task.slots[task.lead].claim is None:
        return
    if task.terms.policy is Policy.AUDIT:
        yield _draw(market, reading, receipt.task)
    with TemporaryDirectory(prefix="trainyard-verify-") as name:
        folder = Path(name)
        try:
            market.ask_workers(reading.book, receipt.task)
            claim = claim_of(receipt.task, task)
            run = open_claimed(market.content, task.terms.manifest, claim, folder)
        except TrainyardError as error:
            yield Check("trace", False, f"the run behind the claim cannot be read: {error}")
            return
        yield _trace(run, task, receipt)
        if task.terms.policy is Policy.AUDIT:
            yield _audits(run, task)
        elif task.terms.policy is Policy.REPLICATE:
            yield _copies(task)
        else:
            yield _scores(task)
        if replay and is_scored(run.published.manifest):
            yield _score_again(market, run, task, folder)
        elif replay:
            yield _replay(market, run, replay, folder)


def _signature(receipt: Receipt) -> Check:
    whose = f"its requester is {receipt.requester}"
    if receipt.signature is None:
        # As the market's page gives it: all else is looked up all the same.
        return Check("signature", False, f"nobody has signed it; {whose}", is_proven=False)
    if receipt.signer == receipt.requester:
        return Check("signature", True, f"signed by its requester, {receipt.requester}")
    return Check("signature", False, f"signed by {receipt.signer or 'nobody'}, and {whose}")


def _place(market: Market, receipt: Receipt) -> Iterator[Check]:
    here = (market.place.chain_id, market.address.lower())
    there = (receipt.chain_id, receipt.market.lower())
    if here != there:
        yield Check(
            "market",
            False,
            f"the receipt is of market {there[1]} on chain {there[0]}, and this is {here[1]} on "
            f"chain {here[0]}: name the right endpoint",
        )


def _chain(market: Market, receipt: Receipt, reading: Reading) -> Check:
    """What the market's events say of the task, beside what the receipt says."""
    state = None if receipt.state is None else bytes.fromhex(receipt.state[2:])
    found = receipt_of(
        reading.events,
        reading.book,
        receipt.task,
        chain_id=receipt.chain_id,
        market=receipt.market,
        start_block=receipt.start_block,
        state=state,
    )
    named = set(Receipt.model_fields) - {"signature"}
    wrong = sorted(name for name in named if getattr(found, name) != getattr(receipt, name))
    if wrong:
        return Check("chain", False, f"the chain says otherwise about: {', '.join(wrong)}")
    events = sum(task_of(one.event) == receipt.task for one in reading.events)
    return Check("chain", True, f"{counted(events, 'event')} say the same, {receipt.outcome}")


def _transactions(market: Market, receipt: Receipt) -> Check:
    """Each is in the chain, went well, and is signed by whom the node says it is from."""
    senders = set[str]()
    for name in receipt.transactions:
        shown = market.endpoints.call("eth_getTransactionByHash", name)
        mined = market.endpoints.call("eth_getTransactionReceipt", name)
        if shown is None or mined is None or mined.get("status") != "0x1":
            return Check("transactions", False, f"{name} is not in the chain, or went wrong")
        try:
            signer = sender_of(shown, bytes.fromhex(name[2:]))
        except ForgedTransactionError as error:
            return Check("transactions", False, f"{name}: {error}")
        if signer.lower() != str(shown["from"]).lower():
            return Check("transactions", False, f"{name} is signed by {signer}, not by its sender")
        senders.add(signer)
    count = len(receipt.transactions)
    return Check(
        "transactions",
        True,
        f"{counted(count, 'transaction')} of {counted(len(senders), 'account')}, all signed",
    )


def _draw(market: Market, reading: Reading, number: int) -> Check:
    """The audited segments are those that the block gave, which nobody knew beforehand."""
    task = reading.book.tasks[number]
    seats = task.own_panel.seats
    if not seats:
        return Check("draw", not task.terms.min_audits, "nobody was drawn")
    block = _draw_block(reading.events, number)
    header = market.endpoints.call("eth_getBlockByNumber", hex(block), False)
    seed = panel_seed(bytes.fromhex(header["hash"][2:]), number)
    wanted = auditable(task.terms.segments, task.terms.audits)
    drawn = draw_segments(seed, task.terms.segments, wanted)
    found = [seat.segment for seat in seats]
    is_right = found == drawn[: len(found)]
    return Check("draw", is_right, f"block {block} draws {drawn}, and {found} were audited")


def _draw_block(events: Iterable[Seen], number: int) -> int:
    found = 0
    for one in events:
        args = one.event.args
        if task_of(one.event) != number:
            continue
        is_own = one.event.name == "DrawPostponed" and args["segment"] == OWN_PANEL
        if one.event.name == "TaskSubmitted" or is_own:
            found = int(args["drawBlock"])
    return found


def _trace(run: ClaimedRun, task: Task, receipt: Receipt) -> Check:
    """From the root on chain to the bytes of the last state."""
    if task.terms.policy is Policy.AUDIT and run.trace.segments != task.terms.segments:
        return Check("trace", False, f"it has {run.trace.segments} segments, not those agreed")
    try:
        state = State.load(run.published.state(run.last))
    except TrainyardError as error:
        return Check("trace", False, f"the last state cannot be read: {error}")
    if receipt.state is not None and receipt.state != f"0x{state.hash.hex()}":
        return Check("trace", False, "it ends with another state than the receipt names")
    return Check(
        "trace",
        True,
        f"{counted(run.trace.segments, 'segment')} under the root on chain; ends with "
        f"{state.hash.hex()[:16]}…",
    )


def _audits(run: ClaimedRun, task: Task) -> Check:
    """What was opened for auditors is of this very trace, and they found the same."""
    for seat in task.own_panel.seats:
        if any(seat.opened) and seat.opened != run.trace.after(seat.segment):
            return Check(
                "audits", False, f"segment {seat.segment}: another state was opened than is there"
            )
        dispute = task.disputes.get(seat.segment)
        if dispute is not None and dispute.state is DisputeState.UPHELD:
            return Check("audits", False, f"referees found segment {seat.segment} to be wrong")
    agreed, count = audits_of(task), len(task.own_panel.seats)
    is_enough = agreed >= min(task.terms.min_audits, count)
    return Check("audits", is_enough, f"{agreed} of {counted(count, 'audit')} agree")


def _copies(task: Task) -> Check:
    """Whoever replicates commits to its claim before it sees another one."""
    count, quorum = copies_of(task), task.terms.quorum
    return Check("copies", count >= quorum, f"{how_checked(task)}; {quorum} have to")


def _scores(task: Task) -> Check:
    """What evaluators committed to blind and then revealed; the median of it is what counts."""
    score = score_of(task)
    if score is None:
        return Check("scores", False, "nobody has revealed a score")
    return Check("scores", score >= target_of(task), how_checked(task))


def _score_again(market: Market, run: ClaimedRun, task: Task, folder: Path) -> Check:
    """The figures of the last state, computed again on this machine."""
    asked = Asked(run.result.manifest, run.result.root)
    try:
        found = audit_score_of_result(
            market.content,
            ContentPath.parse(run.result.run),
            asked,
            folder,
            confinement=market.confinement(),
        )
    except TrainyardError as error:
        return Check("replay", False, f"the score cannot be computed here: {error}")
    if found.found is None:
        return Check("replay", False, f"the last state has no score: {found.reason}")
    figures = found.found.figures
    score = points(figures.loss, figures.metrics)
    if found.agrees and score >= task.terms.target:
        return Check("replay", True, "the score comes out as claimed, bit by bit")
    if found.is_credible and score >= task.terms.target:
        return Check("replay", True, "the score comes out as claimed, as near as machines are")
    return Check("replay", False, f"the score comes out otherwise: {score / 1_000_000:g}")


def _replay(market: Market, run: ClaimedRun, count: int, folder: Path) -> Check:
    """Segments that nobody knew before, computed again on this machine."""
    segments = run.trace.segments
    wanted = sorted(secrets.SystemRandom().sample(range(segments), min(count, segments)))
    asked = Asked(run.result.manifest, run.result.root)
    try:
        found = audit_result(
            market.content,
            ContentPath.parse(run.result.run),
            wanted,
            folder,
            asked=asked,
            confinement=market.confinement(),
        )
    except TrainyardError as error:
        return Check("replay", False, f"segments {wanted} cannot be computed here: {error}")
    if found.agrees:
        return Check("replay", True, f"segments {wanted} come out as claimed, bit by bit")
    if found.is_open:
        message = (
            f"segments {wanted} have other bits here, on another class of machine: that proves "
            "nothing"
        )
        return Check("replay", False, message, is_proven=False)
    wrong = [one.segment for one in found.verdicts if not one.agrees]
    return Check("replay", False, f"segments {wrong} do not come out as claimed")
