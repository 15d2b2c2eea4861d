"""What everyone gained, to the wei, and how slashed money is split."""

from collections.abc import Mapping
from typing import Any

from tests.contracts.yard import PARAMS, STAKE, Yard
from trainyard.protocol.market import BPS, BURN_ADDRESS


def fault_part(amount: int) -> int:
    """What a fault takes from a stake or a bond."""
    return amount * PARAMS.fault_bps // BPS


def finder_part(slashed: int) -> int:
    return slashed * PARAMS.finder_bps // BPS


def requester_part(slashed: int) -> int:
    return slashed * PARAMS.requester_bps // BPS


PENALTY = fault_part(STAKE)


def credits_of_all(yard: Yard) -> dict[str, int]:
    """Every account's credit, that of the burned money too."""
    people = [*yard.by_address, BURN_ADDRESS]
    return dict(zip(people, yard.credits_of(people), strict=True))


def gains(yard: Yard, before: Mapping[str, int]) -> dict[str, int]:
    """How every credit changed; who is not in it kept what it had."""
    return {
        person: after - before.get(person, 0)
        for person, after in credits_of_all(yard).items()
        if after != before.get(person, 0)
    }


def add_up(*gained: tuple[Any, int]) -> dict[str, int]:
    """Expected gains; parts of one account are added, and what is zero is left out."""
    total: dict[str, int] = {}
    for person, amount in gained:
        address = str(person)
        total[address] = total.get(address, 0) + amount
    return {address: amount for address, amount in total.items() if amount}


def is_drained(yard: Yard, task: int) -> bool:
    """Whether the task holds nothing, and the market exactly what it owes."""
    held, owed = yard.market.solvency()
    return bool(yard.market.task(task)["locked"] == 0 and held == owed)
