"""The folder where workers meet: what is no document there is nobody's business."""

import os
from pathlib import Path

import pytest

from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Call, End, Exchange, Offer

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


OFFER = Offer(round=1, slot=0, globe=GLOBE, leaf=GLOBE, delta=GLOBE)


def left_behind(kind: str, path: Path, elsewhere: Path) -> None:
    """What a worker in a sandbox can make in place of its offer; `elsewhere` it cannot read."""
    elsewhere.write_text(OFFER.model_dump_json())
    if kind == "a link":
        path.symlink_to(elsewhere)
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
        (path / "file").write_bytes(b"")
    else:
        path.write_bytes(b" " * (8 << 20) + OFFER.model_dump_json().encode())


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder", "too large"])
def test_offer_that_is_no_plain_file_is_refused_and_goes(
    exchange: Exchange, tmp_path: Path, kind: str
) -> None:
    """Without waiting for it, and without reading what the worker itself could not."""
    path, elsewhere = tmp_path / "rounds" / "000001-offer-0.json", tmp_path / "elsewhere.json"
    left_behind(kind, path, elsewhere)

    with pytest.raises(StateError, match="remove it"):
        exchange.offer(1, 0)
    exchange.withdraw(1, 0)

    assert not os.path.lexists(path)
    assert elsewhere.exists()
    exchange.post(OFFER)
    assert exchange.offer(1, 0) == OFFER


def test_a_folder_in_place_of_a_document_is_forgotten_with_its_round(
    exchange: Exchange, tmp_path: Path
) -> None:
    left_behind("a folder", tmp_path / "rounds" / "000001-call.json", tmp_path / "elsewhere.json")

    exchange.forget(1)

    assert not (tmp_path / "rounds" / "000001-call.json").exists()
