"""A Trustless Gateway over our store: blocks and CARs that the other side verifies by itself.

It gives out what the store has, and goes to nobody else unless it is told to. Every block is
verified before it is sent: where one went bad the connection is cut, so that the other side sees an
answer that broke off instead of one that looks whole.
"""

import hashlib
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from trainyard.content.board import LARGEST_BYTES, Board, NotTakenError, TooManyError
from trainyard.content.car import write_car
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import (
    InvalidCidError,
    InvalidPathError,
    MalformedBlockError,
    NotADirectoryContentError,
    NotFoundError,
    UnavailableError,
)
from trainyard.content.fetching import Arrived, DirectFeed, Feed, Fetcher, ParallelFeed
from trainyard.content.gateway_query import (
    BadRequestError,
    Format,
    NotAcceptableError,
    Scope,
    Wanted,
    parse_wanted,
)
from trainyard.content.limits import KIB
from trainyard.content.names import ContentPath
from trainyard.content.ports import StreamingSource
from trainyard.content.reading import EntryKind, Walk
from trainyard.protocol.errors import PermanentError, TrainyardError

_log = logging.getLogger(__name__)
_SEND_BYTES = 512 * KIB
# What a CID names never changes.
_FOREVER = "public, max-age=29030400, immutable"


def create_app(content: Content, *, fetch: bool = False, board: Board | None = None) -> Starlette:
    """The gateway as an ASGI application.

    With `fetch` it gets what the store lacks from `content`'s sources: for oneself, not for
    strangers, who could have it fetch whatever they like. With a `board` anybody may put up a small
    block with PUT, which is then found here for a while.
    """
    gateway = _Gateway(content, fetch=fetch, board=board)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        gateway.close()

    place = "/ipfs/{path:path}"
    routes = [Route(place, gateway.answer, methods=["GET", "HEAD"])]
    if board is not None:
        routes.append(Route(place, gateway.take, methods=["PUT"]))
    return Starlette(routes=routes, lifespan=lifespan)


class _Gateway:
    def __init__(self, content: Content, *, fetch: bool, board: Board | None) -> None:
        self._limits, self._board = content.limits, board
        more = () if board is None else (board,)
        self._own = Fetcher(content.store, more, limits=content.limits)
        self._fetcher = content.fetcher if fetch else self._own
        if fetch:
            content.fetcher.add_sources(more)

    def close(self) -> None:
        self._own.close()

    def answer(self, request: Request) -> Response:
        cached_only = "only-if-cached" in request.headers.get("cache-control", "")
        try:
            path = ContentPath.parse_url(_raw_path(request))
            wanted = _wanted(request, path)
            tape = _Tape(_feed(self._own if cached_only else self._fetcher))
            return _answer(request, path, wanted, Walk(tape, self._limits), tape)
        except TrainyardError as error:
            return _refusal(error, cached_only=cached_only)

    async def take(self, request: Request) -> Response:
        """Put a block up on the board."""
        try:
            path = ContentPath.parse_url(_raw_path(request))
            if self._board is None or path.names:
                raise BadRequestError("a block is put up by its CID, without a path")
            block = bytearray()
            async for piece in request.stream():
                block += piece
                if len(block) > LARGEST_BYTES:
                    break
            giver = request.client.host if request.client else ""
            self._board.put(path.root, bytes(block), giver)
        except TooManyError as error:
            return PlainTextResponse(f"{error}\n", 429)
        except (NotTakenError, InvalidCidError, InvalidPathError, BadRequestError) as error:
            return PlainTextResponse(f"{error}\n", 400)
        return Response(status_code=204)


def _answer(
    request: Request, path: ContentPath, wanted: Wanted, walk: Walk, tape: "_Tape"
) -> Response:
    if wanted.format is Format.RAW and path.names:
        raise BadRequestError("a raw block is asked for by its CID, without a path")
    cid = walk.resolve(path)
    way = tape.drain()
    block = tape.take(cid).block
    tape.drain()
    headers = _headers(request, path, cid, wanted)
    if _matches(request.headers.get("if-none-match"), headers["etag"]):
        return Response(status_code=304, headers=headers)
    if wanted.format is Format.RAW:
        return Response(block, headers=headers)
    below = _below(walk, tape, cid, wanted)
    pieces: Iterator[bytes] = iter(())
    if request.method == "GET":
        blocks = _sendable(way, below, duplicates=wanted.duplicates)
        pieces = _gathered(write_car([cid], blocks))
    return _Stream(pieces, headers, str(path))


class _Tape:
    """A feed that remembers what was taken: what a walk took is what proves its outcome."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._taken: list[tuple[Cid, bytes]] = []

    def want(self, cids: Sequence[Cid]) -> None:
        self._feed.want(cids)

    def take(self, cid: Cid) -> Arrived:
        arrived = self._feed.take(cid)
        self._taken.append((cid, arrived.block))
        return arrived

    def drain(self) -> list[tuple[Cid, bytes]]:
        taken, self._taken = self._taken, []
        return taken


class _Stream(StreamingResponse):
    """Pieces from a thread. Where they fail the answer is left without its end, and so cut off."""

    def __init__(self, pieces: Iterator[bytes], headers: dict[str, str], what: str) -> None:
        super().__init__((), headers=headers)
        self._pieces, self._what = pieces, what

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while piece := await run_in_threadpool(next, self._pieces, b""):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TrainyardError as error:
            _log.warning("the answer to %s is cut off: %s", self._what, error)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _below(walk: Walk, tape: _Tape, cid: Cid, wanted: Wanted) -> Iterator[tuple[Cid, bytes]]:
    """The blocks from the end of the path on; what can be refused is refused before the first."""
    if wanted.scope is Scope.ALL:
        return _taken(tape, walk.blocks(cid, once=not wanted.duplicates))
    if wanted.scope is Scope.BLOCK:
        tape.take(cid)
        return iter(tape.drain())
    try:
        entry = walk.stat(ContentPath(cid))
    except MalformedBlockError:  # no UnixFS: then the block is all there is to it
        return iter(tape.drain())
    only = tape.drain()
    if entry.kind is EntryKind.DIRECTORY:
        return _taken(tape, walk.links(cid, str(cid)))
    if entry.kind is EntryKind.SYMLINK:
        return iter(only)
    if wanted.range is None:
        return _taken(tape, walk.read(cid))
    start, end = wanted.range.within(entry.size)
    if start >= entry.size > 0:
        raise BadRequestError(f"entity-bytes={wanted.range}: the file has {entry.size} bytes")
    if end <= start:
        return iter(only)
    return _taken(tape, walk.read(cid, start, end - start))


def _taken(tape: _Tape, steps: Iterable[object]) -> Iterator[tuple[Cid, bytes]]:
    for _ in steps:
        yield from tape.drain()
    yield from tape.drain()


def _sendable(
    way: Iterable[tuple[Cid, bytes]], below: Iterable[tuple[Cid, bytes]], *, duplicates: bool
) -> Iterator[tuple[Cid, bytes]]:
    """The blocks of a CAR: none that stands in its CID, and none twice unless asked for."""
    sent: set[bytes] = set()
    for blocks in (way, below):
        for cid, block in blocks:
            if cid.inline is not None or cid.digest in sent:
                continue
            if not duplicates:
                sent.add(cid.digest)
            yield cid, block


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces large enough to be worth a turn of the event loop."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size >= _SEND_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _feed(fetcher: Fetcher) -> Feed:
    """A store on our disk is read as needed; over a network several blocks at once."""
    is_far = any(not isinstance(source, Board) for source in fetcher.sources)
    if is_far or isinstance(fetcher.store, StreamingSource):
        return ParallelFeed(fetcher)
    return DirectFeed(fetcher)


def _raw_path(request: Request) -> str:
    """The path as it was sent, in which an encoded slash is still no separator."""
    raw: bytes | None = request.scope.get("raw_path")
    return quote(request.scope["path"]) if raw is None else raw.decode("latin-1")


def _wanted(request: Request, path: ContentPath) -> Wanted:
    query, accept = request.query_params, request.headers.get("accept")
    if path.root.inline == b"" and "format" not in query and accept in (None, "*/*"):
        return Wanted(Format.RAW)  # the probe whether this is a gateway
    return parse_wanted(query, accept)


def _headers(request: Request, path: ContentPath, cid: Cid, wanted: Wanted) -> dict[str, str]:
    url = "/".join(quote(name, safe="", errors="surrogateescape") for name in path.names)
    place = f"/ipfs/{path.root}" + (f"/{url}" if url else "")
    headers = {
        "content-type": wanted.content_type,
        "content-disposition": f'attachment; filename="{cid}.{_SUFFIX[wanted.format]}"',
        "etag": f'"{cid}.raw"',
        "cache-control": _FOREVER,
        "vary": "Accept",
        "x-content-type-options": "nosniff",
        "x-ipfs-path": place,
    }
    if wanted.format is Format.CAR:
        variant = hashlib.sha256(f"{place}?{wanted.query}".encode()).hexdigest()[:16]
        headers |= {"etag": f'W/"{cid}.car.{variant}"', "accept-ranges": "none"}
    if "format" not in request.query_params:
        headers["content-location"] = f"{place}?{wanted.query}"
    return headers


_SUFFIX = {Format.RAW: "bin", Format.CAR: "car"}


def _matches(condition: str | None, etag: str) -> bool:
    """Whether the other side has this answer already; weak and strong marks are alike here."""
    marks = [mark.strip().removeprefix("W/") for mark in (condition or "").split(",")]
    return "*" in marks or etag.removeprefix("W/") in marks


def _refusal(error: TrainyardError, *, cached_only: bool) -> Response:
    said, headers = str(error), {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    match error:
        case InvalidCidError() | InvalidPathError() | BadRequestError():
            status = 400
        case NotAcceptableError():
            status = 406
        case NotFoundError() | NotADirectoryContentError():
            status = 404
        case UnavailableError(corrupt=True):
            # Where the store is, and who else was asked, is nobody's business.
            status, said = 500, f"the copy of {error.cid} here is damaged"
            _log.error("not served: %s", error)
        case UnavailableError():
            status, said = 412 if cached_only else 404, f"{error.cid} is not here"
        case PermanentError():
            status = 422
        case _:
            status, said = 500, "the store cannot be read"
            _log.error("not served: %s", error)
    return PlainTextResponse(f"{said}\n", status, headers)
