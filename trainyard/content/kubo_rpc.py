"""Kubo's RPC over HTTP: calls, uploads and streams, each with a timeout and a named error."""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection

from trainyard.content.errors import SourceError, SourceTimeoutError

_CONNECT_TIMEOUT_S = 5.0
_CONNECTIONS = 32
_LARGEST_ERROR_BYTES = 64 * 1024

Arguments = Sequence[tuple[str, str]]


class KuboAnswerError(SourceError):
    """Kubo was reached, and refused; `message` is what it said."""

    def __init__(self, source: str, command: str, message: str) -> None:
        super().__init__(source, f"{command}: {message}")
        self.message = message


@dataclass(frozen=True, slots=True)
class Upload:
    """A file for a request: its bytes piece by piece, and how many there are."""

    parts: Iterable[bytes]
    size: int


class _BareConnection(HTTPConnection):
    """Speaks HTTP/1.0. For whoever speaks more, Kubo cuts its answers into 4 KiB chunks, and taking
    those apart costs as much as receiving and hashing them."""

    _http_vsn = 10
    _http_vsn_str = "HTTP/1.0"


class _BarePool(urllib3.HTTPConnectionPool):
    ConnectionCls = _BareConnection


class KuboRpc:
    """One node's RPC. Safe to use from many threads; a timeout is the longest silence allowed."""

    def __init__(self, address: str, *, timeout_s: float = 30.0) -> None:
        self.host, self.port = parse_api_address(address)
        self.name = f"kubo {self.host}:{self.port}"
        self.timeout_s = timeout_s
        self._pool = urllib3.HTTPConnectionPool(
            self.host, self.port, maxsize=_CONNECTIONS, retries=False, blocksize=256 * 1024
        )
        self._bare_pool = _BarePool(self.host, self.port, retries=False)

    def close(self) -> None:
        self._pool.close()
        self._bare_pool.close()

    def call(
        self,
        command: str,
        *arguments: tuple[str, str],
        upload: Upload | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """The whole answer of a command."""
        with self.stream(command, *arguments, upload=upload, timeout_s=timeout_s) as response:
            return response.read()

    def ask(
        self, command: str, *arguments: tuple[str, str], timeout_s: float | None = None
    ) -> dict[str, Any]:
        """The answer of a command that gives one JSON object."""
        answer = self.call(command, *arguments, timeout_s=timeout_s)
        try:
            read: dict[str, Any] = json.loads(answer)
        except ValueError as error:
            raise SourceError(self.name, f"{command}: no JSON in the answer: {error}") from error
        return read

    def lines(
        self,
        command: str,
        *arguments: tuple[str, str],
        upload: Upload | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The JSON objects of a command that gives one a line, as they come."""
        with self.stream(command, *arguments, upload=upload, timeout_s=timeout_s) as response:
            rest = b""
            while piece := response.read1(64 * 1024):
                *whole, rest = (rest + piece).split(b"\n")
                yield from (self._line(command, line) for line in whole if line.strip())
            if rest.strip():
                yield self._line(command, rest)

    @contextmanager
    def stream(
        self,
        command: str,
        *arguments: tuple[str, str],
        upload: Upload | None = None,
        timeout_s: float | None = None,
        bare: bool = False,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The answer of a command while it comes; errors while it is read are named too.

        A bare answer just ends, and whoever reads it must know where: for content that is verified.
        """
        body, headers = _multipart(upload) if upload is not None else (None, {})
        silence_s = timeout_s or self.timeout_s
        # While a body is sent, urllib3 goes by the time for connecting.
        connect_s = silence_s if upload is not None else min(_CONNECT_TIMEOUT_S, silence_s)
        timeout = urllib3.Timeout(connect=connect_s, read=silence_s)
        with self._named(command):
            pool = self._bare_pool if bare else self._pool
            response = pool.request(
                "POST",
                f"/api/v0/{command}?{urlencode(arguments)}",
                body=body,
                headers=headers,
                timeout=timeout,
                preload_content=False,
                decode_content=False,
            )
            try:
                if response.status != 200:
                    said = response.read(_LARGEST_ERROR_BYTES)
                    raise KuboAnswerError(self.name, command, _message(response.status, said))
                yield response
            finally:
                # What is left unread would be taken for the next answer.
                if not _read_to_end(response):
                    response.close()
                response.release_conn()

    @contextmanager
    def _named(self, command: str) -> Iterator[None]:
        try:
            yield
        except urllib3.exceptions.NewConnectionError as error:  # to urllib3 a kind of timeout
            raise SourceError(
                self.name, f"{command}: nobody listens there; is the node running?"
            ) from error
        except urllib3.exceptions.TimeoutError as error:
            raise SourceTimeoutError(self.name, f"{command}: no answer in time") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise SourceError(self.name, f"{command}: {error}") from error

    def _line(self, command: str, line: bytes) -> dict[str, Any]:
        try:
            read: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise SourceError(self.name, f"{command}: no JSON in a line: {error}") from error
        return read


def parse_api_address(address: str) -> tuple[str, int]:
    """Host and port of `http://host:port`, `host:port` or `/ip4/host/tcp/port`."""
    text = address.strip()
    if text.startswith("/"):
        parts = text.strip("/").split("/")
        if len(parts) < 4 or parts[0] not in ("ip4", "ip6", "dns", "dns4", "dns6"):
            raise ValueError(f"{address!r} is no API address: write /ip4/127.0.0.1/tcp/5001")
        host, port = parts[1], parts[3]
    else:
        host, _, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise ValueError(f"{address!r} is no API address: write http://127.0.0.1:5001")
    return host, int(port)


def _multipart(upload: Upload) -> tuple[Iterator[bytes], dict[str, str]]:
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="blocks"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    foot = f"\r\n--{boundary}--\r\n".encode()

    def body() -> Iterator[bytes]:
        yield head
        yield from upload.parts
        yield foot

    return body(), {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(len(head) + upload.size + len(foot)),
    }


def _read_to_end(response: urllib3.BaseHTTPResponse) -> bool:
    return isinstance(response, urllib3.HTTPResponse) and response.closed


def _message(status: int, said: bytes) -> str:
    try:
        return str(json.loads(said)["Message"])
    except (ValueError, KeyError, TypeError):
        return said.decode(errors="replace").strip()[:500] or f"status {status}"
