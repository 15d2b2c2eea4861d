"""Blooms, and numbers and bytes as nodes send them."""

import pytest
from eth_utils.crypto import keccak

from trainyard.chain.blocks import BlockRef, Header, Log, may_hold, suspicious
from trainyard.chain.quantities import parse_bytes, parse_number

ADDRESS, KIND, OTHER = b"\7" * 20, keccak(b"kind"), keccak(b"other")
REF = BlockRef(1, bytes(32))


def _bloom(*values: bytes) -> bytes:
    """As the yellow paper has it: three bits of a big number for each."""
    bits = 0
    for value in values:
        digest = keccak(value)
        for at in (0, 2, 4):
            bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & 2047)
    return bits.to_bytes(256, "big")


def _header(*values: bytes) -> Header:
    return Header(REF, bytes(32), 0, 0, _bloom(*values))


def _log(topic: bytes) -> Log:
    return Log(REF, 0, bytes(32), ADDRESS, (topic,), b"")


def test_a_bloom_holds_what_was_put_in() -> None:
    bloom = _bloom(ADDRESS, KIND)

    assert may_hold(bloom, ADDRESS)
    assert may_hold(bloom, KIND)
    assert not may_hold(bloom, OTHER)
    assert not may_hold(bytes(256), ADDRESS)


@pytest.mark.parametrize(
    ("header", "logs", "found"),
    [
        (_header(), [], False),
        (_header(ADDRESS, KIND), [], True),
        (_header(ADDRESS, KIND), [_log(KIND)], False),
        (_header(ADDRESS, KIND, OTHER), [_log(KIND)], True),
        # Somebody else's log of the same kind, or another kind of ours that is no event.
        (_header(KIND), [], False),
        (_header(ADDRESS), [], False),
    ],
)
def test_a_block_without_its_logs_is_suspicious(
    header: Header, logs: list[Log], found: bool
) -> None:
    assert suspicious(header, logs, ADDRESS, [KIND, OTHER]) == found


@pytest.mark.parametrize("value", [None, 5, "5", "0x", "0xzz", {"a": 1}])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"number|invalid literal"):
        parse_number(value)


@pytest.mark.parametrize("value", [None, 5, "ab", "0xabc", "0xab"])
def test_what_are_no_bytes_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"bytes|hexadecimal"):
        parse_bytes(value, 2)
