"""Blocks and whole DAGs from any Trustless Gateway over HTTP.

The other side may be hostile: what it sends is limited in size and in the time that it may take, is
never decompressed, and leads us nowhere else. Verifying is left to whoever asked.
"""

import errno
import http.client
import io
import ipaddress
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)
from urllib3.response import BaseHTTPResponse
from urllib3.util import Url, parse_url

from trainyard.content.car import read_car
from trainyard.content.cid import Cid
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    LimitExceededError,
    MalformedBlockError,
    SourceError,
    SourceTimeoutError,
)
from trainyard.content.gateway_query import CAR_TYPE, RAW_TYPE, Format, Wanted
from trainyard.content.limits import DEFAULT_LIMITS, KIB, MIB, Limits
from trainyard.protocol.errors import PermanentError

_CONNECTIONS = 32
_BUFFER_BYTES = 256 * KIB
_SAID_BYTES = 200
# What an answer brings in each span of `timeout_s` at least, or else its end.
_PORTION_BYTES = 2 * MIB
# A head, and what a chunked answer may spend on its chunks beside their bytes.
_FRAMING_BYTES = MIB
_FRAMING_FACTOR = 8

_WHOLE = Wanted(Format.CAR)
_ACCEPT = {
    Format.RAW: RAW_TYPE,
    Format.CAR: f"{CAR_TYPE};version=1;order=dfs;dups=n",
}


class GatewaySource:
    """A gateway as a source of blocks and streams. Safe to use from many threads."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 30.0,
        limits: Limits = DEFAULT_LIMITS,
        public_only: bool = False,
    ) -> None:
        """`timeout_s`: for a connection, and for each block, or 2 MiB of a stream, to arrive.

        `public_only`: for an address that a stranger named, who is not to have us ask machines that
        only we can reach.
        """
        self._base = parse_address(address)
        self._limits, self._timeout_s = limits, timeout_s
        make = _POOLS[self._base.scheme == "https", public_only]
        self._pool = make(
            self._base.host or "",
            port=self._base.port,
            maxsize=_CONNECTIONS,
            timeout=urllib3.Timeout(connect=timeout_s, read=timeout_s),
        )

    @property
    def name(self) -> str:
        return f"gateway {self._base.url}"

    def close(self) -> None:
        self._pool.close()

    def fetch(self, cid: Cid) -> bytes:
        most = self._limits.block_bytes
        with self._asked(cid, Wanted(Format.RAW)) as answer:
            data = answer.read(most + 1, decode_content=False)
            # A read past the end tells an answer that is short from one that broke off.
            data += answer.read(most + 1 - len(data), decode_content=False)
        if len(data) > most:
            raise CorruptBlockError(cid, self.name, f"it has over the {most} bytes allowed")
        return data

    def stream(self, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        with self._asked(root, _WHOLE) as answer:
            kind = answer.headers.get("content-type", "")
            if not kind.startswith(CAR_TYPE):
                raise SourceError(self.name, f"sent {_printable(kind)!r} where a CAR was asked for")
            yield from read_car(io.BufferedReader(_Body(answer), _BUFFER_BYTES), self._limits)

    @contextmanager
    def _asked(self, cid: Cid, wanted: Wanted) -> Iterator[BaseHTTPResponse]:
        """The answer while it is read; it frees its connection, or closes it if bytes are left."""
        target = f"{self._base.path or ''}/ipfs/{cid}?{wanted.query}"
        answer: BaseHTTPResponse | None = None
        try:
            answer = self._request(target, _ACCEPT[wanted.format])
            self._check_status(cid, answer)
            yield answer
        except (ReadTimeoutError, ConnectTimeoutError) as error:
            if isinstance(error, NewConnectionError):  # refused at once, for all its ancestry
                raise SourceError(self.name, f"cannot connect: {_cause(error)}") from error
            raise SourceTimeoutError(
                self.name, f"{cid} did not come within {self._timeout_s:g} s"
            ) from error
        except HTTPError as error:
            raise SourceError(self.name, f"no answer for {cid}: {_cause(error)}") from error
        except (MalformedBlockError, LimitExceededError) as error:
            raise SourceError(self.name, f"no usable CAR for {cid}: {error}") from error
        finally:
            if answer is not None:
                if not answer.closed:
                    answer.close()
                answer.release_conn()

    def _request(self, target: str, accept: str) -> BaseHTTPResponse:
        headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "trainyard"}
        for last in (False, True):
            try:
                return self._pool.urlopen(
                    "GET",
                    target,
                    headers=headers,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
            except ProtocolError as error:
                # A connection that lay in the pool may have been closed over there just now.
                if last or not isinstance(_root_cause(error), ConnectionError):
                    raise
        raise AssertionError("unreachable")

    def _check_status(self, cid: Cid, answer: BaseHTTPResponse) -> None:
        if answer.status == 200:
            return
        if answer.status in (404, 410):
            raise BlockNotFoundError(cid, self.name)
        if answer.status in (408, 504):
            raise SourceTimeoutError(self.name, f"answered {answer.status} for {cid}")
        if 300 <= answer.status < 400:
            place = _printable(answer.headers.get("location", "nowhere"))
            raise SourceError(
                self.name,
                f"sends us to {place} for {cid}, which is not followed; configure the address that "
                "answers itself (for a node on this machine 127.0.0.1 rather than localhost)",
            )
        said = _printable(answer.read(_SAID_BYTES, decode_content=False).decode(errors="replace"))
        raise SourceError(self.name, f"answered {answer.status} for {cid}: {said}")


class _Body(io.RawIOBase):
    """The bytes of an answer as they arrive."""

    def __init__(self, answer: BaseHTTPResponse) -> None:
        self._answer = answer

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._answer.read1(len(buffer), decode_content=False)
        buffer[: len(data)] = data
        return len(data)


class _Incoming(io.RawIOBase):
    """A socket that gives up on whoever trickles, and on framing that never comes to its content.

    Only the time spent waiting here counts: a reader may take as long as it likes between reads.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw, self._sock = raw, sock
        self._timeout_s = sock.gettimeout() or 0.0
        self._left_s, self._portion = self._timeout_s, _PORTION_BYTES
        self._allowed = _FRAMING_BYTES

    def allow(self, content_bytes: int) -> None:
        """So much content is asked for now."""
        self._allowed = _FRAMING_BYTES + _FRAMING_FACTOR * content_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._left_s <= 0:
            raise TimeoutError("the answer trickles")
        if self._allowed <= 0:
            raise OSError("an answer without end brings no content")
        self._sock.settimeout(self._left_s)
        began = time.monotonic()
        count = cast("int", self._raw.readinto(buffer))
        self._left_s -= time.monotonic() - began
        self._allowed -= count
        self._portion -= count
        if self._portion <= 0:
            self._left_s, self._portion = self._timeout_s, _PORTION_BYTES
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer that is read through `_Incoming`."""

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        raw = self.fp.detach()
        self._incoming = _Incoming(raw, sock)
        self.fp = io.BufferedReader(self._incoming, _BUFFER_BYTES)

    def read(self, amt: int | None = None) -> bytes:
        self._incoming.allow(amt or 0)
        return super().read(amt)

    def read1(self, n: int = -1) -> bytes:
        self._incoming.allow(max(0, n))
        return super().read1(n)


class _PlainConnection(HTTPConnection):
    response_class = _Response


class _SecureConnection(HTTPSConnection):
    response_class = _Response


class _PublicPlainConnection(_PlainConnection):
    def _new_conn(self) -> socket.socket:
        return _public(super()._new_conn())


class _PublicSecureConnection(_SecureConnection):
    def _new_conn(self) -> socket.socket:
        return _public(super()._new_conn())


def _public(sock: socket.socket) -> socket.socket:
    """The connection, if it leads to a machine that everybody can reach.

    Looked at where it has led, before anything is sent: what a name stands for may change.
    """
    there = ipaddress.ip_address(str(sock.getpeername()[0]).partition("%")[0])
    there = getattr(there, "ipv4_mapped", None) or there
    if not there.is_global:
        sock.close()
        raise OSError(errno.EACCES, f"it leads to {there}, which is no public address")
    return sock


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _PublicPlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PublicPlainConnection


class _PublicSecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _PublicSecureConnection


# By whether it is for HTTPS, and whether for public addresses alone.
_POOLS: dict[tuple[bool, bool], type[urllib3.HTTPConnectionPool]] = {
    (False, False): _PlainPool,
    (True, False): _SecurePool,
    (False, True): _PublicPlainPool,
    (True, True): _PublicSecurePool,
}


def parse_address(address: str) -> Url:
    try:
        url = parse_url(address)
    except LocationParseError:
        url = Url()
    if url.scheme not in ("http", "https") or not url.host or url.query or url.auth:
        shown = _printable(address.rpartition("@")[2])  # what stands before may be a password
        raise PermanentError(
            f"{shown!r} is no gateway's address: write it like http://127.0.0.1:8080"
        )
    path = (url.path or "").rstrip("/").removesuffix("/ipfs")
    return Url(url.scheme, None, url.host, url.port, path or None)


def _root_cause(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _cause(error: HTTPError) -> str:
    cause = _root_cause(error)
    return _printable(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)


def _printable(text: str) -> str:
    """Text of a stranger's that is safe on a terminal."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text[:_SAID_BYTES])
    return kept.strip()
