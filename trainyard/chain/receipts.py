"""What the outbox asks of a node."""

from dataclasses import dataclass

from trainyard.chain.blocks import BlockRef, header_at
from trainyard.chain.calls import Call
from trainyard.chain.errors import NodeRefusedError
from trainyard.chain.journal import Entry
from trainyard.chain.quantities import number_in, parse_bytes, parse_number
from trainyard.chain.rpc import Rpc


@dataclass(frozen=True, slots=True)
class Receipt:
    transaction: bytes
    block: BlockRef
    succeeded: bool
    gas_used: int


def receipt_of(rpc: Rpc, entry: Entry) -> Receipt | None:
    """That of the version that was mined, whichever it is, if its block is on the chain."""
    asked = [[f"0x{version.hash.hex()}"] for version in entry.versions]
    for answer in rpc.batch("eth_getTransactionReceipt", asked):
        if answer is None:
            continue
        try:
            receipt = Receipt(
                parse_bytes(answer["transactionHash"], 32),
                BlockRef(parse_number(answer["blockNumber"]), parse_bytes(answer["blockHash"], 32)),
                parse_number(answer["status"]) == 1,
                parse_number(answer["gasUsed"]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise rpc.error(f"sent a malformed receipt: {error}") from error
        if receipt.transaction not in {version.hash for version in entry.versions}:
            raise rpc.error("sent the receipt of another transaction")
        header = header_at(rpc, receipt.block.number)
        if header is None or header.ref != receipt.block:
            raise rpc.error(f"sent a receipt of another {receipt.block}: it is on two forks")
        return receipt
    return None


def user_of(rpc: Rpc, sender: str, nonce: int, block: int) -> bytes:
    """The transaction of the sender that has this nonce, which lies in `block` or before it."""
    last, first, step = block, block - 1, 1
    # Not far from there, most likely; and states of long ago not all nodes have.
    while first >= 0 and count_of(rpc, sender, first) > nonce:
        last, first, step = first, first - step, 2 * step
    first = max(first, -1)
    while last - first > 1:
        middle = (first + last) // 2
        if count_of(rpc, sender, middle) > nonce:
            last = middle
        else:
            first = middle
    shown = rpc.request("eth_getBlockByNumber", hex(last), True)
    try:
        for one in shown["transactions"]:
            is_by = parse_bytes(one["from"], 20) == parse_bytes(sender, 20)
            if is_by and parse_number(one["nonce"]) == nonce:
                return parse_bytes(one["hash"], 32)
    except (ValueError, TypeError, KeyError) as error:
        raise rpc.error(f"sent a malformed block: {error}") from error
    raise rpc.error(f"block {last} has no transaction of {sender} with nonce {nonce}")


def is_mined(rpc: Rpc, transaction: bytes) -> bool:
    shown = rpc.request("eth_getTransactionByHash", f"0x{transaction.hex()}")
    return isinstance(shown, dict) and shown.get("blockNumber") is not None


def tip_of(rpc: Rpc) -> int:
    """What the node would add to the base fee; nothing, if it does not say."""
    try:
        return number_in(rpc, rpc.request("eth_maxPriorityFeePerGas"))
    except NodeRefusedError:
        return 0


def call_request(sender: str, call: Call) -> dict[str, str]:
    data = f"0x{call.data.hex()}"
    return {"from": sender, "to": call.to, "data": data, "value": hex(call.value)}


def count_of(rpc: Rpc, sender: str, block: int | str) -> int:
    """How many transactions of the sender are in the chain up to a block; its next nonce."""
    tag = hex(block) if isinstance(block, int) else block
    return number_in(rpc, rpc.request("eth_getTransactionCount", sender, tag))
