"""Terms with good defaults for a manifest, and what they mean: the price, and how surely cheating
is found. No I/O: whoever asks says what the market has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from trainyard.protocol.draws import auditable
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.incentives import Task as Incentives
from trainyard.protocol.incentives import detection, spread, stake_for_honesty
from trainyard.protocol.ledger.book import ZERO_WORD, Book
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import BPS, MAX_SLOTS, Params, Policy, TaskState, Terms
from trainyard.protocol.moves import ENDED
from trainyard.protocol.telling import counted

_ETHER = 10**18
_REWARD = _ETHER // 10
_AUDITS, _COPIES = 2, 3
# A fee is a part of the reward, as a segment is of the work; never more than this part.
_FEE_PART = 10
# A seat locks a bond, which the market does not lend for less than this part of it.
_BONDS_PER_FEE = 100
HALF, TENTH = 0.5, 0.1
_COUNTED_SEGMENTS = 400
_MOST_COUNTED = 2_000
# Prices of long ago say little about now.
_RECENT = 500
_ALONE = (Policy.REPLICATE, Policy.CONTEST)
# How long things take at most; all but the last end as soon as everybody is done.
WINDOWS: Mapping[str, int] = {
    "join_for": 1_800,
    "train_for": 86_400,
    "audit_for": 3_600,
    "answer_for": 1_800,
    "challenge_for": 3_600,
}
# On a devnet nobody wants to wait for the last window.
DEVNET_WINDOWS: Mapping[str, int] = {
    "join_for": 300,
    "train_for": 3_600,
    "audit_for": 600,
    "answer_for": 120,
    "challenge_for": 5,
}


class OfferError(PermanentError):
    """Terms that no market takes; the message says what to ask for instead."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What a market has of one environment class: people, and what they were paid lately."""

    env_class: bytes
    workers: int = 0
    # Those that hold no slot.
    free: int = 0
    auditors: int = 0
    # Of one slot, the newest first.
    rewards: tuple[int, ...] = ()

    @property
    def median_reward(self) -> int | None:
        return median_low(self.rewards) if self.rewards else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a requester asks for; what is None gets a good default."""

    policy: Policy | None = None
    # Only where each slot works alone; else there are as many as the manifest has workers.
    slots: int | None = None
    audits: int | None = None
    target: int | None = None
    reward: int | None = None
    stake: int | None = None
    audit_fee: int | None = None
    join_for: int | None = None
    train_for: int | None = None
    audit_for: int | None = None
    answer_for: int | None = None
    challenge_for: int | None = None


def supplies_of(book: Book) -> dict[bytes, Supply]:
    """What a market has, by class."""
    busy = {
        slot.worker
        for task in book.tasks.values()
        if task.state not in ENDED
        for index, slot in enumerate(task.slots)
        if task.joined >> index & 1
    }
    people: dict[bytes, list[tuple[bool, bool]]] = {}
    for who, worker in book.workers.items():
        if worker.env_class != ZERO_WORD:
            found = people.setdefault(worker.env_class, [])
            found.append((who not in busy, worker.pool_index > 0))
    rewards: dict[bytes, list[int]] = {}
    for _, task in sorted(book.tasks.items(), reverse=True):
        # What was taken back, nobody had taken.
        if task.state is not TaskState.CANCELLED:
            rewards.setdefault(task.terms.env_class, []).append(task.terms.reward)
    return {
        name: Supply(
            name,
            workers=len(people.get(name, [])),
            free=sum(is_free for is_free, _ in people.get(name, [])),
            auditors=sum(is_drawn for _, is_drawn in people.get(name, [])),
            rewards=tuple(rewards.get(name, [])[:_RECENT]),
        )
        for name in people.keys() | rewards.keys()
    }


def best_supply(supplies: Iterable[Supply]) -> Supply | None:
    """The class in which a task finds people soonest; None where nobody is registered."""
    found = [one for one in supplies if one.workers]
    return max(found, key=lambda one: (one.free, one.auditors, one.workers), default=None)


def terms_for(
    manifest: Manifest,
    supply: Supply,
    params: Params,
    wish: Wish,
    windows: Mapping[str, int] = WINDOWS,
) -> Terms:
    """Terms that can be posted as they are."""
    if manifest.training.mode == "rounds" and manifest.training.workers == 1:
        raise OfferError("rounds of one worker have nothing to merge; use mode 'single', or more")
    policy = wish.policy
    if policy is None:
        policy = Policy.SCORE if manifest.training.mode == "async" else Policy.AUDIT
    slots = manifest.training.workers
    if policy in _ALONE:
        slots = wish.slots or _COPIES
    if slots > MAX_SLOTS:
        raise OfferError(f"a task has at most {MAX_SLOTS} slots, and {slots} are asked for")
    segments = manifest.plan.segments if policy is Policy.AUDIT else 0
    reward = _REWARD if supply.median_reward is None else supply.median_reward
    if wish.reward is not None:
        reward = wish.reward
    audits = _audits(policy, segments, _AUDITS if wish.audits is None else wish.audits)
    fee = wish.audit_fee
    if fee is None:
        fee = 0 if policy is Policy.REPLICATE else _fee(params, reward)
    stake = wish.stake
    if stake is None:
        stake = max(reward, _least_stake(policy, params, fee, audits, slots))
    chosen: dict[str, Any] = {
        name: getattr(wish, name) or max(usual, params.min_window if name != "join_for" else 1)
        for name, usual in windows.items()
    }
    quorum = slots // 2 + 1 if policy is Policy.REPLICATE else (slots + 1) // 2
    return Terms(
        manifest=manifest.digest,
        env_class=supply.env_class,
        policy=policy,
        slots=slots,
        quorum=1 if policy is Policy.CONTEST else quorum,
        audits=audits,
        min_audits=audits if policy is Policy.AUDIT else min(1, audits),
        reward=reward,
        stake=stake,
        audit_fee=fee,
        segments=segments,
        target=wish.target or 0,
        **chosen,
    )


def likely_cost(terms: Terms) -> int:
    """Workers are paid, and as many audits as the trace bears."""
    audits = terms.audits
    if terms.policy is Policy.AUDIT:
        audits = auditable(terms.segments, terms.audits)
    winners = 1 if terms.policy is Policy.CONTEST else terms.slots
    return terms.reward * winners + terms.audit_fee * audits


def detection_of(segments: int, audits: int, fraction: float) -> float | None:
    """Chance that audits find a worker that cheated in this part of the segments."""
    count = auditable(segments, audits)
    if segments < 1 or count < 1:
        return None
    # Exact counting is for numbers that a task really has; beyond them theory is as good.
    if segments > _MOST_COUNTED:
        return 1 - (1 - fraction) ** count
    return detection(spread(segments, fraction), count)


def detection_words(terms: Terms, fraction: float, words: str) -> str | None:
    """The same in a sentence about a worker that fakes `words` of its work."""
    found = detection_of(terms.segments, terms.audits, fraction)
    if terms.policy is not Policy.AUDIT or found is None:
        return None
    audits = counted(auditable(terms.segments, terms.audits), "audit")
    return (
        f"{audits} find a worker that fakes {words} of its work {round(found * 100)} times in 100"
    )


def honest_stake(terms: Terms, params: Params) -> int:
    """With work that costs what it is paid: at which stake faking half of it gains nothing."""
    count = auditable(terms.segments, terms.audits)
    if terms.policy is not Policy.AUDIT or not count or not terms.segments:
        return terms.stake
    finder = params.finder_bps / BPS
    task = Incentives(
        price=1.0, cost=1.0, stake=1.0, audits=count, referees=params.referees, finder_part=finder
    )
    needed = stake_for_honesty(task, spread(min(terms.segments, _COUNTED_SEGMENTS), HALF))
    return int(min(needed, 1_000.0) * terms.reward)


def warnings_of(terms: Terms, supply: Supply, params: Params) -> list[str]:
    """What a requester should know before it pays."""
    found = []
    if supply.free < terms.slots:
        found.append(
            f"{counted(supply.free, 'worker')} of this class are free, and {terms.slots} are "
            "needed: it may take a while"
        )
    if terms.audits and supply.auditors < terms.audits:
        found.append(f"only {counted(supply.auditors, 'auditor')} can be drawn in this class")
    elif (missing := too_few(terms, supply)) is not None:
        found.append(missing)
    if terms.policy is Policy.AUDIT and not terms.audits:
        found.append("without audits nobody checks the work unless you challenge it yourself")
    if params.referee_cost(terms.audit_fee) > params.seat_bond:
        found.append("the audit fee is higher than the market's bonds cover: it will be refused")
    if supply.median_reward and terms.reward < supply.median_reward // 2:
        found.append("the reward is less than half of what this class is usually paid")
    return found


def too_few(terms: Terms, supply: Supply) -> str | None:
    """Why a task would end without a result though the market takes it; None if it would not.

    Nobody is drawn to check what it trained itself, so workers and auditors are different people.
    """
    needed = terms.slots + terms.min_audits
    if not terms.min_audits or supply.workers >= needed:
        return None
    return (
        f"{counted(terms.slots, 'worker')} and {counted(terms.min_audits, 'auditor')} are needed, "
        f"all of them different, and {supply.workers} are registered in this class"
    )


def _fee(params: Params, reward: int) -> int:
    """A part of the reward, within what bonds are worth: referees get it as well as auditors."""
    least = -(-params.seat_bond // _BONDS_PER_FEE)
    most = params.seat_bond // max(1, params.referees + params.escalation)
    return max(least, min(reward // _FEE_PART, most))


def _audits(policy: Policy, segments: int, wanted: int) -> int:
    if policy is Policy.REPLICATE:
        return 0
    if policy is Policy.AUDIT:
        return auditable(segments, wanted)
    # A median is of an odd number.
    return max(1, wanted) | 1


def _least_stake(policy: Policy, params: Params, fee: int, audits: int, slots: int) -> int:
    """What the market asks for at least: a stake pays for the audits of what was wrong."""
    quorum = (slots + 1) // 2
    cost = fee * audits + (params.referee_cost(fee) if policy is Policy.AUDIT else 0)
    return -(-cost // max(1, quorum))
