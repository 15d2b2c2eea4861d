"""The folder where workers meet: what is no document there is nobody's business."""

from pathlib import Path

import pytest

from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Call, End, Exchange

GLOBE = "ab" * 32
STRAY = [
    "evil-call.json",
    "-call.json",
    "1-call.json",
    "0000002-call.json",
    "000009-call.json.orig",
    "000009-cell.json",
    "٠٠٠٠٠٩-call.json",
    ".notes",
]


@pytest.fixture
def exchange(tmp_path: Path) -> Exchange:
    found = Exchange(tmp_path)
    found.prepare()
    for name in STRAY:
        (tmp_path / "rounds" / name).write_bytes(b"nonsense")
    return found


def call(number: int) -> Call:
    return Call(round=number, globe=GLOBE, last=(None, None))


def test_latest_call_is_that_of_a_round(exchange: Exchange) -> None:
    assert exchange.latest_call() is None
    for number in (0, 9, 10, 1_000_000):
        exchange.post(call(number))
        assert exchange.latest_call() == call(number)


def test_later_rounds_are_forgotten_and_nothing_else(exchange: Exchange, tmp_path: Path) -> None:
    for number in range(3):
        exchange.post(call(number))
    exchange.post(End(round=3, slot=0, globe=GLOBE, root=GLOBE))
    (tmp_path / "rounds" / ".000001-call.json.123.tmp").write_bytes(b"half")

    exchange.forget(1)

    kept = {path.name for path in (tmp_path / "rounds").iterdir()}
    assert kept == {"000000-call.json", *STRAY}


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "", GLOBE + "\n", GLOBE.upper()])
def test_name_of_a_state_leads_nowhere_else(exchange: Exchange, name: str) -> None:
    assert exchange.path_of(GLOBE).name == f"{GLOBE}.safetensors"
    with pytest.raises(StateError, match="cannot be the name of a state"):
        exchange.path_of(name)
    assert not exchange.has(name)
