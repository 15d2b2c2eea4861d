"""Blocks out of streams of whole DAGs, for as long as those are quick and honest."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.errors import MalformedBlockError, UnavailableError
from trainyard.content.fetching import Arrived, Fetcher, ParallelFeed, first_streaming
from trainyard.content.limits import KIB, MIB
from trainyard.content.ports import StreamingSource
from trainyard.content.readahead import ReadAhead
from trainyard.protocol.errors import PermanentError, TransientError

# Blocks that a stream may send ahead of the one that is wanted, or in vain.
_AHEAD_BYTES = 32 * MIB
# What a block counts beside its bytes: blocks of no bytes at all would else cost nothing.
_BLOCK_BYTES = KIB
# Blocks of a stream that are kept after use, since a block that stands twice often does so nearby.
_RECENT_BYTES = 8 * MIB
# Below this, single blocks side by side are as quick as a stream of them.
_LINKS_WORTH_A_STREAM = 16


class StreamFeed:
    """Blocks from a stream; what it lacks or sends wrong is fetched singly.

    Where it breaks off, or where somebody else is quicker than a stream that stands still, other
    sources are asked for streams of what lies below the next large nodes.
    """

    def __init__(self, fetcher: Fetcher, source: StreamingSource, root: Cid) -> None:
        self._fetcher, self._source, self._root = fetcher, source, root
        self._blocks: ReadAhead | None = ReadAhead(source.stream(root))
        self._streamed = root
        self._left: set[str] = set()
        self._ahead: dict[Cid, Arrived] = {}
        self._ahead_bytes = self._vain_bytes = 0
        self._seen: set[Cid] = set()
        self._recent: OrderedDict[Cid, Arrived] = OrderedDict()
        self._recent_bytes = 0
        self._rest = ParallelFeed(fetcher)

    def want(self, cids: Sequence[Cid]) -> None:
        if self._blocks is None:
            self._rest.want(cids)

    def take(self, cid: Cid) -> Arrived:
        if cid.inline is not None:
            return self._fetcher.get(cid)
        arrived = self._recent.get(cid)
        if arrived is None and not self._rest.has_begun(cid):
            arrived = self._from_stream(cid)
        if arrived is None:
            arrived = self._rest.take(cid)
            self._seen.add(cid)
            self._stream_below(cid, arrived.block)
        self._keep(cid, arrived)
        return arrived

    def _from_stream(self, cid: Cid) -> Arrived | None:
        arrived = self._ahead.pop(cid, None)
        if arrived is not None:
            self._ahead_bytes -= len(arrived.block) + _BLOCK_BYTES
            return arrived
        # A block that stands in the DAG twice is sent once.
        while self._blocks is not None and cid not in self._seen:
            if not self._blocks.wait(self._fetcher.hedge_s):
                arrived = self._quicker(cid, self._blocks)
                if arrived is not None:
                    return arrived
            received = self._next()
            if received is None:
                return None
            name, arrived = received
            known = name in self._seen
            self._seen.add(name)
            if name == cid:
                self._vain_bytes = 0
                return arrived
            if known:
                self._vain_bytes += len(arrived.block) + _BLOCK_BYTES
            else:
                self._ahead[name] = arrived
                self._ahead_bytes += len(arrived.block) + _BLOCK_BYTES
            if self._ahead_bytes + self._vain_bytes > _AHEAD_BYTES:
                self._give_up()
        return None

    def _quicker(self, cid: Cid, blocks: ReadAhead) -> Arrived | None:
        """The block from another source, if it comes before the stream goes on."""
        beside = self._fetcher.submit_beside(cid, self._source)
        if beside is None:
            return None
        beside.add_done_callback(lambda _: blocks.wake())
        if blocks.wait(unless=beside.done):
            return None
        try:
            arrived = beside.result()
        except UnavailableError:
            return None
        self._give_up()
        return arrived

    def _keep(self, cid: Cid, arrived: Arrived) -> None:
        if cid not in self._recent:
            self._recent_bytes += len(arrived.block) + _BLOCK_BYTES
            self._recent[cid] = arrived
        self._recent.move_to_end(cid)
        while self._recent_bytes > _RECENT_BYTES:
            _, oldest = self._recent.popitem(last=False)
            self._recent_bytes -= len(oldest.block) + _BLOCK_BYTES

    def _next(self) -> tuple[Cid, Arrived] | None:
        assert self._blocks is not None
        try:
            cid, block = next(self._blocks)
            return cid, self._fetcher.check(cid, block, self._source.name)
        except StopIteration:
            self._blocks = None
            # One of a part is at its end when the walk goes on elsewhere; that of the whole is not.
            if self._streamed == self._root:
                self._left.add(self._source.name)
        except (TransientError, PermanentError):
            # The single fetch that follows meets the same fault, or another source's answer.
            self._give_up()
        return None

    def _give_up(self) -> None:
        self._fetcher.blame(self._source)
        self._left.add(self._source.name)
        self.close()

    def _stream_below(self, cid: Cid, block: bytes) -> None:
        """Ask somebody who has not failed us yet for all that is below a large node."""
        whole = self._blocks is not None and self._streamed == self._root
        if whole or cid.codec is not Codec.DAG_PB:
            return
        with suppress(MalformedBlockError):  # which is for the walk to say
            if len(decode_node(block).links) < _LINKS_WORTH_A_STREAM:
                return
            source = first_streaming(
                source for source in self._fetcher.ranked_sources() if source.name not in self._left
            )
            if source is not None:
                # A walk is depth first: with what a stream of another part had, it is done.
                self.close()
                self._source, self._streamed = source, cid
                self._blocks = ReadAhead(source.stream(cid))
                self._seen, self._vain_bytes = {cid}, 0

    def close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None
