"""CIDs and the varints that they are made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.content.cid import Cid, Codec, HashFunction
from trainyard.content.errors import InvalidCidError
from trainyard.content.varint import read_varint, write_varint

# Known to every IPFS node: the empty file, the empty directory in both versions, and the probe.
EMPTY_FILE = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
EMPTY_FOLDER = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354"
EMPTY_FOLDER_V0 = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"
PROBE = "bafkqaaa"


def base36(data: bytes) -> str:
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 36)
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + text
    return text


def test_known_blocks_have_their_known_names() -> None:
    assert str(Cid.of(Codec.RAW, b"")) == EMPTY_FILE
    assert str(Cid.of(Codec.DAG_PB, b"\x0a\x02\x08\x01")) == EMPTY_FOLDER


def test_both_versions_name_one_block() -> None:
    old, new = Cid.parse(EMPTY_FOLDER_V0), Cid.parse(EMPTY_FOLDER)

    assert (old.version, new.version) == (0, 1)
    assert old.digest == new.digest
    assert str(old) == EMPTY_FOLDER_V0


def test_the_probe_carries_its_block() -> None:
    probe = Cid.parse(PROBE)

    assert probe.inline == b""
    assert probe.matches(b"")
    assert not probe.matches(b"x")
    assert str(probe) == PROBE


@pytest.mark.parametrize(
    "text",
    [
        EMPTY_FILE.upper(),
        "f" + Cid.parse(EMPTY_FILE).encode().hex(),
        "F" + Cid.parse(EMPTY_FILE).encode().hex().upper(),
        "zb2rhmy65F3REf8SZp7De11gxtECBGgUKaLdiDj7MCGCHxbDW",
        "k" + base36(Cid.parse(EMPTY_FILE).encode()),
    ],
    ids=["base32 upper", "base16", "base16 upper", "base58", "base36"],
)
def test_other_bases_are_read(text: str) -> None:
    assert Cid.parse(text) == Cid.parse(EMPTY_FILE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "Qm",
        EMPTY_FILE[:-1],
        EMPTY_FILE + "a",
        EMPTY_FILE[:10] + EMPTY_FILE[10:].upper(),
        EMPTY_FILE.replace("b", "1", 1),
        EMPTY_FOLDER_V0[:-1] + "0",
        "Qm" + "z" * 44,
        "m" + EMPTY_FILE[1:],
        "a" * 257,
        "fzz",
        "b\udcff",
        "../../etc/passwd",
    ],
)
def test_what_is_no_cid_is_refused(text: str) -> None:
    with pytest.raises(InvalidCidError):
        Cid.parse(text)


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        (b"\x02\x55\x12\x20" + bytes(32), "version"),
        (b"\x01\x71\x12\x20" + bytes(32), "codec"),
        (b"\x01\x55\x13\x40" + bytes(64), "hash function"),
        (b"\x01\x55\x12\x1f" + bytes(31), "32 bytes"),
        (b"\x01\x55\x12\x20" + bytes(31), "cut short"),
        (b"\x01\x55\x12\x20" + bytes(33), "too many"),
        (b"\x12\x20" + bytes(31), "cut short"),
        (b"\x01\x55\x00\x81\x01" + bytes(129), "identity"),
    ],
)
def test_what_cannot_be_verified_is_refused(encoded: bytes, why: str) -> None:
    """A hash that we cannot compute would let anything pass."""
    with pytest.raises(InvalidCidError, match=why):
        Cid.decode(encoded)


@given(st.binary(max_size=300), st.sampled_from(Codec))
def test_text_and_bytes_lead_back(block: bytes, codec: Codec) -> None:
    cid = Cid.of(codec, block)

    assert Cid.parse(str(cid)) == cid
    assert Cid.decode(cid.encode()) == cid
    assert cid.matches(block)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_bit_never_matches(block: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(block) * 8 - 1))
    flipped = bytearray(block)
    flipped[at // 8] ^= 1 << at % 8

    assert not Cid.of(Codec.RAW, block).matches(bytes(flipped))


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        cid = Cid.decode(data)
    except ValueError:
        return
    assert cid.encode() == data


@given(st.binary(max_size=128))
def test_identity_carries_up_to_128_bytes(block: bytes) -> None:
    cid = Cid(Codec.RAW, block, HashFunction.IDENTITY)

    assert Cid.parse(str(cid)).inline == block


@given(st.integers(0, 2**63 - 1))
def test_varint_leads_back(number: int) -> None:
    encoded = write_varint(number)

    assert read_varint(b"\xff" + encoded + b"\xff", 1) == (number, 1 + len(encoded))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\xff" * 9, b"\xff" * 9 + b"\x01"])
def test_varint_that_no_writer_makes_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="varint"):
        read_varint(data, 0)
