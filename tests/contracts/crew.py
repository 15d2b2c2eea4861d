"""Crews of any size: more workers than the chain has accounts, and what each does with its slot."""

from collections.abc import Sequence
from typing import Any

from brownie import accounts

from tests.contracts.yard import ENV_CLASS, ETHER, Yard, digest, salt_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import MAX_SLOTS, Policy

HAND_CREDIT = 2 * ETHER


def hire(yard: Yard, count: int) -> list[Any]:
    """New workers of the yard's class with credit for a stake."""
    hands = [accounts.add("0x" + digest(f"hand {index}").hex()) for index in range(count)]
    for hand in hands:
        yard.stranger.transfer(hand, HAND_CREDIT + ETHER)
        yard.market.register(digest("profile"), ENV_CLASS, 0, {"from": hand, "value": HAND_CREDIT})
        yard.by_address[hand.address] = hand
    return hands


def full_crew(yard: Yard) -> list[Any]:
    """A worker for each of the most slots that a task can have."""
    return [*yard.workers, *hire(yard, MAX_SLOTS - len(yard.workers))]


def running_with(yard: Yard, crew: Sequence[Any], policy: Policy, **changes: Any) -> int:
    """A task whose slots are held by `crew`, in this order."""
    task = yard.post(policy, slots=len(crew), **changes)
    yard.join(task, *crew)
    return task


def submit_each(yard: Yard, task: int, crew: Sequence[Any], claims: Sequence[Claim | None]) -> None:
    """Each slot's claim in the open; None keeps silent."""
    for slot, (worker, claim) in enumerate(zip(crew, claims, strict=True)):
        if claim is not None:
            yard.market.submit(task, slot, claim.result, claim.root, [], {"from": worker})


def commit_each(yard: Yard, task: int, crew: Sequence[Any], claims: Sequence[Claim | None]) -> None:
    for slot, (worker, claim) in enumerate(zip(crew, claims, strict=True)):
        if claim is not None:
            commitment = yard.protocol.claim_commitment(
                task, worker.address, salt_of(worker), claim.result, claim.root
            )
            yard.market.commit(task, slot, commitment, {"from": worker})


def reveal_each(yard: Yard, task: int, crew: Sequence[Any], claims: Sequence[Claim | None]) -> None:
    for slot, (worker, claim) in enumerate(zip(crew, claims, strict=True)):
        if claim is not None:
            yard.market.reveal(
                task, slot, salt_of(worker), claim.result, claim.root, {"from": worker}
            )


def ask(yard: Yard, task: int, slot: int, by: Any = None) -> int:
    """Ping a slot; returns when it must have answered."""
    tx = yard.market.ping(task, slot, {"from": by or yard.requester})
    return int(tx.events["SlotPinged"]["pongBy"])


def lose(yard: Yard, task: int, slot: int, by: Any = None) -> Any:
    """A slot's worker leaves a ping unanswered and is evicted, by a stranger if nobody is named."""
    yard.warp(ask(yard, task, slot))
    return yard.market.evict(task, slot, {"from": by or yard.stranger})
