"""A gateway that does wrong on purpose, over real HTTP."""

import gzip
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import Self, cast
from urllib.parse import parse_qs, urlsplit

from trainyard.content.car import write_car
from trainyard.content.cid import Cid, Codec
from trainyard.content.fetching import DirectFeed, Fetcher
from trainyard.content.limits import DEFAULT_LIMITS
from trainyard.content.reading import Walk


class Fault(Enum):
    """What goes wrong with each answer that is chosen to."""

    NONE = auto()
    FLIPPED = auto()
    SHORT = auto()
    CUT_OFF = auto()
    OVERSIZED = auto()
    ENDLESS = auto()
    WITHHELD = auto()
    SILENT = auto()
    SILENT_HALFWAY = auto()
    TRICKLED = auto()
    TRICKLED_HEAD = auto()
    ENDLESS_HEAD = auto()
    ENDLESS_TRAILER = auto()
    ERROR_500 = auto()
    RESET = auto()
    GARBAGE = auto()
    REDIRECTED = auto()
    COMPRESSED = auto()
    HTML = auto()


class StreamFault(Enum):
    """What goes wrong in a CAR alone."""

    WRONG_CID = auto()
    UNREADABLE_CID = auto()
    JUNK_FIRST = auto()
    JUNK_ONLY = auto()
    CUT_SHORT = auto()
    HUGE_SECTION = auto()
    NO_CAR = auto()
    WITHOUT_A_BLOCK = auto()


class HostileGateway:
    """Serves `blocks`; answers about a CID in `chosen` (all, if None) have the fault."""

    def __init__(
        self,
        blocks: Mapping[Cid, bytes],
        fault: Fault | StreamFault = Fault.NONE,
        chosen: frozenset[Cid] | None = None,
    ) -> None:
        self.blocks, self.fault, self.chosen = dict(blocks), fault, chosen
        self.requests: list[str] = []
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def raw_requests(self) -> list[str]:
        return [line for line in self.requests if "format=raw" in line]

    def harms(self, cid: Cid) -> bool:
        return self.chosen is None or cid in self.chosen


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], gateway: HostileGateway) -> None:
        self.gateway = gateway
        super().__init__(address, _Handler)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        gateway = cast(_Server, self.server).gateway
        with suppress(OSError):
            line = self.rfile.readline(8192).decode("latin-1")
            while self.rfile.readline(8192) not in (b"\r\n", b"\n", b""):
                pass
            if not line:
                return
            gateway.requests.append(line.strip())
            url = urlsplit(line.split(" ")[1])
            cid = Cid.parse(url.path.rsplit("/", 1)[-1])
            if parse_qs(url.query).get("format") == ["car"]:
                self._car(gateway, cid)
            else:
                self._raw(gateway, cid)

    def _raw(self, gateway: HostileGateway, cid: Cid) -> None:
        block = gateway.blocks.get(cid)
        if block is None:
            self._send("404 Not Found", b"not here")
        elif isinstance(gateway.fault, Fault) and gateway.harms(cid):
            self._harm(gateway, cid, block)
        else:
            self._send("200 OK", block)

    def _harm(self, gateway: HostileGateway, cid: Cid, block: bytes) -> None:
        match gateway.fault:
            case Fault.NONE:
                self._send("200 OK", block)
            case Fault.FLIPPED:
                self._send("200 OK", _flipped(block))
            case Fault.SHORT:
                self._send("200 OK", block[:-1])
            case Fault.CUT_OFF:
                self._send("200 OK", block[: len(block) // 2], length=len(block))
            case Fault.OVERSIZED:
                self._send("200 OK", block + bytes(DEFAULT_LIMITS.block_bytes))
            case Fault.ENDLESS:
                self._head("200 OK")
                self._without_end(gateway, bytes(65536))
            case Fault.WITHHELD:
                self._send("404 Not Found", b"")
            case Fault.SILENT:
                gateway.stopping.wait()
            case Fault.SILENT_HALFWAY:
                self._head("200 OK", f"Content-Length: {len(block)}")
                self.wfile.write(block[: len(block) // 2])
                gateway.stopping.wait()
            case Fault.TRICKLED:
                self._head("200 OK", f"Content-Length: {len(block)}")
                self._trickle(gateway, block)
            case Fault.TRICKLED_HEAD:
                self._trickle(gateway, b"HTTP/1.1 200 OK\r\n" + b"X-Slow: very\r\n" * 1000)
            case Fault.ENDLESS_HEAD:
                self._without_end(gateway, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
            case Fault.ENDLESS_TRAILER:
                self._head("200 OK", "Transfer-Encoding: chunked")
                self.wfile.write(b"%x\r\n%b\r\n0\r\n" % (len(block), block))
                self._without_end(gateway, b"X-Trailer: more\r\n" * 1000)
            case Fault.ERROR_500:
                self._send("500 Oops", b"\x1b[31mdisk on fire")
            case Fault.RESET:
                self._reset()
            case Fault.GARBAGE:
                self.wfile.write(b"\x00\x01\x02 this is no HTTP\r\n\r\n")
            case Fault.REDIRECTED:
                self._head(
                    "301 Moved Permanently", f"Location: {gateway.address}/ipfs/{cid}?format=car"
                )
            case Fault.COMPRESSED:
                bomb = gzip.compress(bytes(1_000_000))
                self._send("200 OK", bomb, "Content-Encoding: gzip")
            case Fault.HTML:
                self._send("200 OK", b"<html>Welcome to the hotel's network</html>")

    def _car(self, gateway: HostileGateway, root: Cid) -> None:
        if root not in gateway.blocks:
            self._send("404 Not Found", b"not here")
            return
        kind = "text/html" if gateway.fault is StreamFault.NO_CAR else "application/vnd.ipld.car"
        head = f"Content-Type: {kind}; version=1; order=dfs; dups=n"
        if gateway.fault is Fault.NONE or isinstance(gateway.fault, StreamFault):
            self._head("200 OK", head)
            for piece in _faulty_car(gateway, root):
                self.wfile.write(piece)
            return
        # The same fault as in a single block, once the stream comes to it.
        self._head("200 OK", head)
        for piece in write_car([root], self._until_harm(gateway, root)):
            self.wfile.write(piece)

    def _until_harm(self, gateway: HostileGateway, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        for cid, block in _dfs(gateway.blocks, root):
            if not gateway.harms(cid):
                yield cid, block
                continue
            match gateway.fault:
                case Fault.FLIPPED:
                    yield cid, _flipped(block)
                case Fault.SHORT:
                    yield cid, block[:-1]
                case Fault.OVERSIZED:
                    yield cid, block + bytes(DEFAULT_LIMITS.block_bytes)
                case Fault.WITHHELD:
                    continue
                case Fault.SILENT | Fault.SILENT_HALFWAY | Fault.TRICKLED:
                    gateway.stopping.wait()
                    return
                case Fault.RESET:
                    self._reset()
                    return
                case _:
                    return

    def _head(self, status: str, *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", "Connection: close", *headers, "", ""]
        self.wfile.write("\r\n".join(lines).encode())

    def _send(self, status: str, body: bytes, *headers: str, length: int | None = None) -> None:
        stated = len(body) if length is None else length
        self._head(status, f"Content-Length: {stated}", *headers)
        self.wfile.write(body)

    def _trickle(self, gateway: HostileGateway, data: bytes) -> None:
        """A byte at a time, each well before a reader's patience ends."""
        for byte in data:
            self.wfile.write(bytes([byte]))
            if gateway.stopping.wait(0.05):
                return

    def _without_end(self, gateway: HostileGateway, piece: bytes) -> None:
        while not gateway.stopping.is_set():
            self.wfile.write(piece)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _faulty_car(gateway: HostileGateway, root: Cid) -> Iterator[bytes]:
    sent = list(_dfs(gateway.blocks, root))
    junk = [(Cid.of(Codec.RAW, data), data) for data in (b"%d" % number for number in range(50))]
    match gateway.fault:
        case StreamFault.WRONG_CID:
            sent = [(cid, sent[(at + 1) % len(sent)][1]) for at, (cid, _) in enumerate(sent)]
        case StreamFault.UNREADABLE_CID:
            yield from write_car([root], sent[:2])
            yield b"\x08\x01\x71\x12\x04abcd"
            return
        case StreamFault.JUNK_FIRST:
            sent = [*junk, *sent]
        case StreamFault.JUNK_ONLY:
            sent = junk
        case StreamFault.CUT_SHORT:
            whole = b"".join(write_car([root], sent))
            yield whole[: len(whole) // 2]
            return
        case StreamFault.HUGE_SECTION:
            yield from write_car([root], sent[:2])
            yield b"\xff\xff\xff\xff\x7f"
            return
        case StreamFault.WITHOUT_A_BLOCK:
            del sent[len(sent) // 2]
    yield from write_car([root], sent)


def _dfs(blocks: Mapping[Cid, bytes], root: Cid) -> Iterator[tuple[Cid, bytes]]:
    walk = Walk(DirectFeed(Fetcher(None, [_Held(blocks)])), DEFAULT_LIMITS)
    return ((cid, block) for cid, block, _ in walk.blocks(root))


class _Held:
    name = "held"

    def __init__(self, blocks: Mapping[Cid, bytes]) -> None:
        self._blocks = blocks

    def fetch(self, cid: Cid) -> bytes:
        return self._blocks[cid]


def _flipped(block: bytes) -> bytes:
    return bytes([block[0] ^ 1]) + block[1:]
