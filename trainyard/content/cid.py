"""Content identifiers, as far as we can verify them: SHA-256, and identity for tiny blocks.

Binary and text forms follow the public multiformats specification. Base32 is what we write; base58
(CIDv0 and v1), base36 and base16 are read too.
"""

import base64
import hashlib
from dataclasses import dataclass
from enum import IntEnum

from trainyard.content.errors import InvalidCidError
from trainyard.content.varint import read_varint, write_varint

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST_TEXT = 256
_LONGEST_IDENTITY = 128


class Codec(IntEnum):
    RAW = 0x55
    DAG_PB = 0x70


class HashFunction(IntEnum):
    IDENTITY = 0x00
    SHA2_256 = 0x12


@dataclass(frozen=True, slots=True, order=True)
class Cid:
    """The name of a block: what kind it is, and the hash of its bytes."""

    codec: Codec
    digest: bytes
    hash_function: HashFunction = HashFunction.SHA2_256
    version: int = 1

    @classmethod
    def of(cls, codec: Codec, block: bytes | memoryview) -> "Cid":
        return cls(codec, hashlib.sha256(block).digest())

    @classmethod
    def parse(cls, text: str) -> "Cid":
        """Read a CID from its text form."""
        if not 2 <= len(text) <= _LONGEST_TEXT:
            raise InvalidCidError(f"a CID has 2 to {_LONGEST_TEXT} characters, not {len(text)}")
        try:
            return cls.decode(_decode_text(text))
        except (ValueError, KeyError) as error:
            raise InvalidCidError(f"{text!r} is no CID: {error}") from error

    @classmethod
    def decode(cls, data: bytes) -> "Cid":
        """Read a CID from its bytes, of which none may be left over."""
        cid, end = cls.decode_prefix(data)
        if end != len(data):
            raise InvalidCidError(f"{len(data) - end} bytes too many after a CID")
        return cid

    @classmethod
    def decode_prefix(cls, data: bytes, start: int = 0) -> tuple["Cid", int]:
        """Read the CID at `start`, and say where it ends."""
        if data[start : start + 2] == b"\x12\x20":  # a bare SHA-256 multihash: version 0
            digest = data[start + 2 : start + 34]
            if len(digest) != 32:
                raise InvalidCidError("a CIDv0 is cut short")
            return cls(Codec.DAG_PB, bytes(digest), version=0), start + 34
        version, at = read_varint(data, start)
        if version != 1:
            raise InvalidCidError(f"CID version {version} is not supported")
        codec, at = read_varint(data, at)
        function, at = read_varint(data, at)
        length, at = read_varint(data, at)
        digest = data[at : at + length]
        if len(digest) != length:
            raise InvalidCidError("a CID is cut short")
        return _checked(codec, function, bytes(digest)), at + length

    def encode(self) -> bytes:
        if self.version == 0:
            return b"\x12\x20" + self.digest
        head = bytes([1]) + write_varint(self.codec) + write_varint(self.hash_function)
        return head + write_varint(len(self.digest)) + self.digest

    def matches(self, block: bytes | memoryview) -> bool:
        """Whether `block` is what this CID names."""
        if self.hash_function is HashFunction.IDENTITY:
            return bytes(block) == self.digest
        return hashlib.sha256(block).digest() == self.digest

    @property
    def inline(self) -> bytes | None:
        """The block itself, where the CID carries it."""
        return self.digest if self.hash_function is HashFunction.IDENTITY else None

    def __str__(self) -> str:
        if self.version == 0:
            return _encode_base58(self.encode())
        return "b" + base64.b32encode(self.encode()).decode().lower().rstrip("=")


def _checked(codec: int, function: int, digest: bytes) -> Cid:
    try:
        known_codec = Codec(codec)
    except ValueError:
        raise InvalidCidError(f"codec 0x{codec:x} is not supported: raw and dag-pb are") from None
    try:
        known_function = HashFunction(function)
    except ValueError:
        raise InvalidCidError(
            f"hash function 0x{function:x} is not supported: SHA-256 is"
        ) from None
    if known_function is HashFunction.SHA2_256 and len(digest) != 32:
        raise InvalidCidError(f"a SHA-256 digest has 32 bytes, not {len(digest)}")
    if len(digest) > _LONGEST_IDENTITY:
        raise InvalidCidError(f"an identity CID carries at most {_LONGEST_IDENTITY} bytes")
    return Cid(known_codec, digest, known_function)


def _decode_text(text: str) -> bytes:
    if len(text) == 46 and text.startswith("Qm"):
        return _decode_digits(text, _BASE58)
    prefix, body = text[0], text[1:]
    match prefix:
        case "b" | "B":
            letters = body.upper()
            if (prefix == "b") != (body == body.lower()):
                raise ValueError("mixed case in base32")
            return base64.b32decode(letters + "=" * (-len(letters) % 8))
        case "f" | "F":
            return bytes.fromhex(body)
        case "z":
            return _decode_digits(body, _BASE58)
        case "k" | "K":
            return _decode_digits(body.lower(), _BASE36)
    raise ValueError(f"multibase {prefix!r} is not supported")


def _decode_digits(text: str, alphabet: str) -> bytes:
    number = 0
    for letter in text:
        digit = alphabet.find(letter)
        if digit < 0:
            raise ValueError(f"{letter!r} is no digit of base{len(alphabet)}")
        number = number * len(alphabet) + digit
    zeros = len(text) - len(text.lstrip(alphabet[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _encode_base58(data: bytes) -> str:
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return _BASE58[0] * (len(data) - len(data.lstrip(b"\0"))) + text
