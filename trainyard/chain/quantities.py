"""JSON-RPC's numbers and bytes, which a sound endpoint sends and a broken one does not."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Not loaded with web3 where only values are looked at.
    from trainyard.chain.rpc import Rpc


def number_in(rpc: "Rpc", value: Any) -> int:
    try:
        return parse_number(value)
    except ValueError as error:
        raise rpc.error(str(error)) from error


def parse_number(value: Any) -> int:
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError(f"sent {value!r:.40} where a number belongs")
    return int(value, 16)


def parse_bytes(value: Any, length: int | None = None) -> bytes:
    if not isinstance(value, str) or not value.startswith("0x"):
        raise ValueError(f"sent {value!r:.40} where bytes belong")
    found = bytes.fromhex(value[2:])
    if length is not None and len(found) != length:
        raise ValueError(f"sent {len(found)} bytes where {length} belong")
    return found
