"""What a worker of rounds signs: that a part of a round is its own. No I/O.

The digest is that of EIP-712 typed data, so that a contract can check a signature too, and that no
signature for another purpose can be passed off as one of these.
"""

from dataclasses import dataclass

from eth_keys.datatypes import PrivateKey, Signature
from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

_DOMAIN = keccak(
    keccak(b"EIP712Domain(string name,string version)") + keccak(b"Trainyard") + keccak(b"1")
)
_TYPE = keccak(
    b"Offer(bytes32 manifest,uint256 round,uint256 slot,bytes32 globe,bytes32 leaf,bytes32 delta,"
    b"uint256 absence)"
)
# As Ethereum counts the two points that a signature can be of.
_FIRST_V = 27


@dataclass(frozen=True, slots=True)
class Statement:
    """What worker `slot` has of a round: the hash of its leaf, and of its delta or why of none."""

    manifest: bytes
    round: int
    slot: int
    globe: bytes
    leaf: bytes
    delta: bytes | None
    absence: int | None

    @property
    def digest(self) -> bytes:
        numbers = self.round, self.slot, self.absence or 0
        number, slot, absence = (value.to_bytes(32, "big") for value in numbers)
        delta = self.delta or bytes(32)
        said = keccak(
            _TYPE + self.manifest + number + slot + self.globe + self.leaf + delta + absence
        )
        return keccak(b"\x19\x01" + _DOMAIN + said)

    def sign(self, key: bytes) -> str:
        signature = PrivateKey(key).sign_msg_hash(self.digest).to_bytes()
        return (signature[:-1] + bytes([signature[-1] + _FIRST_V])).hex()

    def signer(self, signature: str) -> str | None:
        """The address whose key signed this; None if the signature is none at all."""
        try:
            data = bytes.fromhex(signature)
            parts = Signature(data[:-1] + bytes([data[-1] - _FIRST_V]))
            return parts.recover_public_key_from_msg_hash(self.digest).to_checksum_address()
        except (BadSignature, ValidationError, ValueError, IndexError):
            return None


def address_of(key: bytes) -> str:
    return PrivateKey(key).public_key.to_checksum_address()
