"""Who signed a text (EIP-191), or nobody."""

from eth_account.messages import encode_defunct
from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

_BYTES = 65
# As Ethereum counts the two points that a signature can be of.
_FIRST_V = 27
# Of a signature and its mirror image only the lower one is taken, so that each has one form.
_HALF = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0


def signer_of(text: str, signature: str) -> str | None:
    """The address whose key signed exactly this text; None for what is no signature."""
    try:
        data = bytes.fromhex(signature.removeprefix("0x"))
    except ValueError:
        return None
    if len(data) != _BYTES or int.from_bytes(data[32:64], "big") > _HALF:
        return None
    v = data[-1] - _FIRST_V if data[-1] >= _FIRST_V else data[-1]
    signable = encode_defunct(text=text)
    digest = keccak(b"\x19" + signable.version + signable.header + signable.body)
    try:
        found = Signature(data[:-1] + bytes([v]))
        return str(found.recover_public_key_from_msg_hash(digest).to_checksum_address())
    except (BadSignature, ValidationError, ValueError):
        return None
