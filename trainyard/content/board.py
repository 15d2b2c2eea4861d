"""A board: a few small blocks that anybody may put up, for a while, beside a gateway's own.

A digest on chain says what a worker's profile is, and not where. On a board it can be found, and in
it where all else is. A board has not to be trusted, and keeps nothing for good: whoever needs a
block to be there puts it up again and again.
"""

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import urllib3
from urllib3.exceptions import HTTPError

from trainyard.content.cid import Cid, Codec
from trainyard.content.errors import BlockNotFoundError, SourceError
from trainyard.content.gateway_client import parse_address
from trainyard.content.limits import KIB
from trainyard.protocol.errors import PermanentError, TransientError

LARGEST_BYTES = 16 * KIB
# For who puts its blocks up every minute this is far off; what is left behind goes away.
_KEPT_S = 3600.0
_MINUTE_S = 60.0
_SAID_BYTES = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    blocks: int = 4096
    # Of one machine, or of one network in IPv6, where a machine has as many addresses as it likes.
    blocks_each: int = 256
    puts_a_minute: int = 120
    # In all, so that counting them costs no more than it does.
    givers_a_minute: int = 65_536


class NotTakenError(PermanentError):
    """A block that is none, or none for a board."""


class TooManyError(TransientError):
    """More blocks in a minute than a board takes."""


@dataclass(frozen=True, slots=True)
class _Kept:
    block: bytes
    giver: str
    until: float


class Board:
    """Blocks in memory, the oldest first. Safe to use from many threads."""

    name = "board"

    def __init__(
        self, bounds: Bounds | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bounds, self._clock = bounds or Bounds(), clock
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._each: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._minute = clock()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def fetch(self, cid: Cid) -> bytes:
        with self._lock:
            self._expire()
            kept = self._kept.get(cid.digest) if cid.codec is Codec.RAW else None
        if kept is None:
            raise BlockNotFoundError(cid, self.name)
        return kept.block

    def put(self, cid: Cid, block: bytes, giver: str) -> None:
        """Keep a block for a while, or begin that while anew."""
        if cid.codec is not Codec.RAW or cid.inline is not None:
            raise NotTakenError(f"{cid} is no raw block with a hash, and only such are put up")
        if len(block) > LARGEST_BYTES:
            raise NotTakenError(f"{len(block)} bytes, where at most {LARGEST_BYTES} are put up")
        if not cid.matches(block):
            raise NotTakenError(f"those bytes are not {cid}")
        giver = _network(giver)
        with self._lock:
            self._count(giver)
            self._expire()
            self._forget(cid.digest)
            self._make_room(giver)
            self._kept[cid.digest] = _Kept(block, giver, self._clock() + _KEPT_S)
            self._each[giver] += 1

    def _count(self, giver: str) -> None:
        if self._clock() - self._minute >= _MINUTE_S:
            self._asked.clear()
            self._minute = self._clock()
        is_new = giver not in self._asked
        if (is_new and len(self._asked) >= self._bounds.givers_a_minute) or (
            self._asked[giver] >= self._bounds.puts_a_minute
        ):
            raise TooManyError("too many blocks in one minute: try again in the next")
        self._asked[giver] += 1

    def _expire(self) -> None:
        now = self._clock()
        while self._kept:
            digest, oldest = next(iter(self._kept.items()))
            if oldest.until > now:
                return
            self._forget(digest)

    def _make_room(self, giver: str) -> None:
        """Who puts up many loses its own before anybody else loses one."""
        if self._each[giver] >= self._bounds.blocks_each:
            self._forget_oldest(giver)
        elif len(self._kept) >= self._bounds.blocks:
            self._forget_oldest(self._each.most_common(1)[0][0])

    def _forget_oldest(self, giver: str) -> None:
        self._forget(next(name for name, kept in self._kept.items() if kept.giver == giver))

    def _forget(self, digest: bytes) -> None:
        kept = self._kept.pop(digest, None)
        if kept is not None:
            self._each[kept.giver] -= 1
            if not self._each[kept.giver]:
                del self._each[kept.giver]


def put_up(address: str, block: bytes, *, timeout_s: float = 10.0) -> None:
    """Put a block up on the board at `address`; SourceError says why it was not taken."""
    base, cid = parse_address(address), Cid.of(Codec.RAW, block)
    name = f"board {base.url}"
    with urllib3.PoolManager() as pool:
        try:
            answer = pool.request(
                "PUT",
                f"{base.url}/ipfs/{cid}",
                body=block,
                headers={"Content-Type": "application/vnd.ipld.raw", "User-Agent": "trainyard"},
                timeout=urllib3.Timeout(total=timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            said = answer.read(_SAID_BYTES, decode_content=False)
            answer.close()
        except HTTPError as error:
            raise SourceError(name, f"cannot be asked: {type(error).__name__}") from error
    if answer.status not in (200, 201, 204):
        told = said.decode(errors="replace")
        shown = "".join(one if one.isprintable() else " " for one in told).strip()
        raise SourceError(name, f"does not take blocks: it answered {answer.status} {shown}")


def _network(giver: str) -> str:
    try:
        address = ipaddress.ip_address(giver)
    except ValueError:
        return giver
    if address.version == 4:
        return giver
    return str(ipaddress.ip_network((address, 64), strict=False))
