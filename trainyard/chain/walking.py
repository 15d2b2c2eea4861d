"""One range of blocks with the market's logs, as one node tells it, and checked against itself.

What is found: logs of blocks that are not on the chain being walked (a balancer may ask a node on
another fork), blocks that do not follow each other, logs out of the range or of another contract,
doubled ones. Logs that were left out are found by the blooms of their blocks: whoever cuts an
answer short leaves blocks behind whose blooms speak of logs that are not there, and the last block
that it did send is asked for again by its hash. What a bloom makes suspicious is settled by asking
for that one block.

What is not found: an event left out of the middle of an answer from a block that has another of the
same kind; and a node that forges blooms. With `thorough` off, only the blocks that a reorg could
reach are looked at one by one: of older ones, only those that have logs are asked for, and logs
that were left out are not found.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainyard.chain.blocks import BlockRef, Header, Log, headers_at, logs_of, may_hold, suspicious
from trainyard.chain.codec import market_codec
from trainyard.chain.errors import RangeRefusedError
from trainyard.chain.rpc import Rpc
from trainyard.chain.spans import Span


@dataclass(frozen=True, slots=True)
class Walk:
    """A range of the chain: the blocks of it that were looked at, and all logs in it."""

    to: BlockRef
    blocks: tuple[BlockRef, ...]
    logs: tuple[Log, ...]
    # When those blocks were made, by their own stamps.
    times: Mapping[int, int] = field(default_factory=dict)


class Walker:
    def __init__(self, market: str, span: Span, *, depth: int, thorough: bool) -> None:
        self._market, self._address = market, bytes.fromhex(market.removeprefix("0x"))
        self._span, self._depth, self._thorough = span, depth, thorough

    def walk(self, rpc: Rpc, first: int, end: int, head: Header, last: BlockRef | None) -> Walk:
        """The blocks from `first` on, as many as the node will answer for, `end` at most."""
        to, logs = self._logs(rpc, first, end)
        headers = self._headers(rpc, first, to, head, logs)
        _check_links(rpc, headers, last)
        by_number = {header.ref.number: header for header in headers}
        self._check_places(rpc, first, to, logs, by_number)
        self._check_whole(rpc, logs, by_number)
        blocks = [header.ref for header in headers]
        if last is None and first == blocks[0].number > 0:
            # What a reorg of all blocks that we will have seen goes back to.
            blocks.insert(0, BlockRef(first - 1, headers[0].parent))
        times = {header.ref.number: header.timestamp for header in headers}
        return Walk(blocks[-1], tuple(blocks), tuple(logs), times)

    def _logs(self, rpc: Rpc, first: int, end: int) -> tuple[int, list[Log]]:
        while True:
            to = min(first + self._span.size - 1, end)
            question = {"address": self._market, "fromBlock": hex(first), "toBlock": hex(to)}
            try:
                found = logs_of(rpc, question)
            except RangeRefusedError:
                # What was asked may have been less than the span.
                self._span.size = to - first + 1
                if not self._span.shrink():
                    raise
            else:
                self._span.grow()
                return to, sorted(found, key=lambda log: (log.block.number, log.index))

    def _headers(
        self, rpc: Rpc, first: int, to: int, head: Header, logs: list[Log]
    ) -> list[Header]:
        near = first if self._thorough else max(first, head.ref.number - self._depth)
        wanted = {*range(near, to + 1), *(log.block.number for log in logs), to}
        return headers_at(rpc, sorted(number for number in wanted if first <= number <= to))

    def _check_places(
        self, rpc: Rpc, first: int, to: int, logs: list[Log], headers: dict[int, Header]
    ) -> None:
        places = {(log.block.number, log.index) for log in logs}
        if len(places) != len(logs):
            raise rpc.error("sent the same log twice")
        for log in logs:
            if log.address != self._address:
                raise rpc.error("sent a log of another contract")
            if not first <= log.block.number <= to:
                raise rpc.error(f"sent a log of block {log.block.number}, not of {first} to {to}")
            if headers[log.block.number].ref != log.block:
                raise rpc.error(f"sent a log of another {log.block}: it is on two forks")
            bloom = headers[log.block.number].bloom
            if not log.topics or not may_hold(bloom, log.topics[0]):
                raise rpc.error(f"sent a log that {log.block} does not have")

    def _check_whole(self, rpc: Rpc, logs: list[Log], headers: dict[int, Header]) -> None:
        by_block: dict[int, list[Log]] = defaultdict(list)
        for log in logs:
            by_block[log.block.number].append(log)
        topics = market_codec().topics
        cut = logs[-1].block.number if logs else None
        for number, header in headers.items():
            sent = by_block[number]
            if number == cut or suspicious(header, sent, self._address, topics):
                self._ask_again(rpc, header, sent)

    def _ask_again(self, rpc: Rpc, header: Header, sent: list[Log]) -> None:
        question = {"address": self._market, "blockHash": f"0x{header.ref.hash.hex()}"}
        again = sorted(logs_of(rpc, question), key=lambda log: log.index)
        if again != sent:
            raise rpc.error(
                f"of {header.ref} it sent {len(sent)} logs in a range, and {len(again)} others by"
                " its hash: it leaves logs out"
            )


def _check_links(rpc: Rpc, headers: list[Header], last: BlockRef | None) -> None:
    before = last
    for header in headers:
        follows = before is not None and before.number == header.ref.number - 1
        if before is not None and follows and header.parent != before.hash:
            raise rpc.error(
                f"its {header.ref} does not follow {before}: the chain changed, or it has two"
            )
        before = header.ref
