"""The parts of the market share one storage, by delegatecall: they must see it alike."""

from pathlib import Path

import pytest

from scripts.compile_contracts import DEPLOYED

STORAGE = Path(__file__).resolve().parents[2] / "snapshots" / "storage"
*PARTS, MARKET = DEPLOYED


def variables(contract: str) -> list[str]:
    """Slot, offset, size, name and type of each variable, without the structs listed below them."""
    return (STORAGE / f"{contract}.txt").read_text().split("\n\n")[0].splitlines()


@pytest.mark.parametrize("part", PARTS)
def test_part_has_the_variables_of_the_market_in_the_same_places(part: str) -> None:
    seen = variables(part)

    assert len(seen) > 1
    assert seen == variables(MARKET)[: len(seen)]
