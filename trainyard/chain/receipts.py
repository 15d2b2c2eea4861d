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
