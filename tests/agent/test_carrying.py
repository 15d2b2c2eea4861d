"""What another worker names is carried here, and lies nowhere but where it belongs."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.exchange import Exchange
from trainyard.engine.state import State
from trainyard.protocol.errors import PermanentError
from worker_agent.runner.carrying import Carrier

STATE = State({"weights/a": np.arange(4, dtype=np.float32)})


class Giver:
    """Gives the same state whatever it is asked for."""

    def __init__(self) -> None:
        self.targets: list[Path] = []

    async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
        self.targets.append(target)
        STATE.save(target)


def carry(folder: Path, name: str) -> tuple[Exchange, Giver]:
    exchange, giver = Exchange(folder / "exchange"), Giver()
    exchange.prepare()
    plane: Any = giver

    async def run() -> None:
        carrier = Carrier(plane, manifest_of("mlp"), exchange, folder / "desk")
        await carrier.states(1, name)

    asyncio.run(run())
    return exchange, giver


def test_state_is_carried_by_way_of_a_name_of_ours(tmp_path: Path) -> None:
    name = STATE.hash.hex()

    exchange, giver = carry(tmp_path, name)

    assert exchange.get(name) == STATE
    assert [path.parent for path in giver.targets] == [tmp_path / "desk"]
    assert giver.targets[0].name != name
    assert list((tmp_path / "desk").iterdir()) == []


def test_path_in_place_of_a_name_is_refused(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.write_bytes(b"ours")

    with pytest.raises(PermanentError, match="worker 1 names a state"):
        carry(tmp_path, str(ours))

    assert ours.read_bytes() == b"ours"
