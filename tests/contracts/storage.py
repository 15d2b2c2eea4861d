"""Reads the market's storage word by word, many words in one request.

A view of the market costs Ganache several milliseconds, which is too much for a comparison of all
money after every step. Where things lie is taken from the snapshots of the storage layout.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brownie
from eth_utils.crypto import keccak

LAYOUT = Path(__file__).resolve().parents[2] / "snapshots" / "storage" / "TrainingMarket.txt"
LINE = re.compile(r"^ *(\d+) \+(\d+) +(\d+)  (\w+): (.+)$", re.MULTILINE)
# A variable of the market, the keys of a mapping, and a member of its struct; or a variable alone.
Place = tuple[Any, ...]


class Storage:
    def __init__(self, address: str) -> None:
        self.address = address
        self._variables, self._structs = _read_layout(LAYOUT.read_text())

    def read(self, places: Sequence[Place]) -> list[int]:
        """The numbers at these places, each named as `("_accounts", who, "credit")`."""
        found = [self._find(place) for place in places]
        words = brownie.web3.provider.make_batch_request(
            [("eth_getStorageAt", [self.address, hex(slot), "latest"]) for slot, _, _ in found]
        )
        return [
            int(word["result"].removeprefix("0x") or "0", 16) >> 8 * offset & (1 << 8 * size) - 1
            for word, (_, offset, size) in zip(words, found, strict=True)
        ]

    def _find(self, place: Place) -> tuple[int, int, int]:
        slot, offset, size, kind = self._variables[place[0]]
        if len(place) == 1:
            return slot, offset, size
        *keys, member = place[1:]
        for key in keys:
            slot = int.from_bytes(keccak(_word(key) + _word(slot)), "big")
        struct = re.findall(r"struct ([\w.]+)", kind)[0]
        within, offset, size, _ = self._structs[struct][member]
        return slot + within, offset, size


def _word(key: str | int) -> bytes:
    return (int(key, 16) if isinstance(key, str) else key).to_bytes(32, "big")


def _read_layout(text: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    variables, *structs = text.split("\n\n")
    return _entries(variables), {
        re.findall(r"struct ([\w.]+)", block)[0]: _entries(block) for block in structs
    }


def _entries(block: str) -> dict[str, tuple[int, int, int, str]]:
    return {
        name: (int(slot), int(offset), int(size), kind)
        for slot, offset, size, name, kind in LINE.findall(block)
    }
