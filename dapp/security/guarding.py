"""The outermost layer: hosts, rates, bodies, headers, and a line of log for each request."""

import asyncio
import re
import secrets
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dapp.errors import ApiError
from dapp.security.answers import problem_response
from dapp.security.buckets import Buckets
from dapp.security.clients import asking, client_of, header
from dapp.security.counting import Counts
from dapp.security.headers import headers_for
from dapp.settings import Settings

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS = _SAFE | {"POST", "PUT", "PATCH", "DELETE"}
_API = "/api/v1"
# Asked by machines that know the server by its number; nothing of it is anybody's own.
_OPERATIONS = frozenset({"/healthz", "/readyz", "/metrics"})
# What is paid for out of the second, smaller allowance: changes that take much, or are kept.
_COSTLY = (
    "/content",
    "/uploads",
    "/models",
    "/data/preview",
    "/manifests",
    "/preflight",
    "/examples/",
    "/faucet",
)
# And answers that are made, or fetched from others: what each costs of it.
_COSTLY_ANSWERS = (
    (re.compile(rf"{_API}/content/.+"), 0.2),
    (re.compile(rf"{_API}/tasks/[0-9]+/result/model\.keras"), 1.0),
    (re.compile(rf"{_API}/tasks/[0-9]+/(?:result(?:/state|/tensorboard)?|trace/[0-9]+)"), 0.2),
)
# Of a run's numbers the usual ones cost nothing, and more of them a little.
_METRICS = re.compile(rf"{_API}/tasks/[0-9]+/metrics")
_FEW_POINTS, _MANY_POINTS_COST = 1000, 0.05
# The pieces of one upload are one piece of work; a form stores its manifest with each change.
_CHEAPER = {("PATCH", "/uploads"): 0.02, ("POST", "/manifests"): 0.1}
# A body that comes slower than this, on the whole, is there to keep the line busy.
_LEAST_BYTES_PER_S = 1024
_SLACK_BYTES = 64 << 10


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings, counts: Counts) -> None:
        self._app, self._settings, self._counts = app, settings, counts
        self._rates = Buckets(settings.requests_per_s, settings.request_burst)
        self._costly = Buckets(settings.costly_per_min / 60, settings.costly_per_min)
        self._hosts = _hosts(settings)
        self._headers = headers_for(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope["trainyard.client"] = client_of(scope, self._settings.proxies)
        asking.set(scope["trainyard.client"])
        request_id = secrets.token_hex(8)
        sent = _Sent()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status, sent.after_s = message["status"], time.perf_counter() - began
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    *(one for one in self._headers(scope["path"]) if one[0] not in own),
                ]
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                self._counts.refused.labels(refusal.code).inc()
                await problem_response(refusal)(scope, receive, answer)
            else:
                await self._app(scope, self._bounded(scope, receive), answer)
        except Exception:
            # A supervisor: the answer has its headers and its number, and the log says why.
            structlog.get_logger().exception("request failed", id=request_id)
            if sent.status is not None:
                # Half of an answer is on its way: cutting the line says that it is no whole one.
                raise
            await problem_response(_failed())(scope, receive, answer)
        finally:
            self._note(scope, sent, began, request_id)

    def _refusal(self, scope: Scope) -> ApiError | None:
        host = header(scope, b"host").rsplit(":", 1)[0].lower()
        if host not in self._hosts and scope["path"] not in _OPERATIONS:
            # Else a foreign page could point its own name at this machine and talk to it.
            return ApiError(400, "wrong_host", f"this server is not {host[:80]!r}")
        method, path = scope["method"], scope["path"]
        if method not in _SAFE and header(scope, b"sec-fetch-site") == "cross-site":
            return ApiError(403, "cross_site", "changes are made from the server's own page only")
        who = scope["trainyard.client"]
        wait_s = self._rates.take(who)
        cost = cost_of(method, path, scope["query_string"])
        if not wait_s and cost:
            wait_s = self._costly.take(who, cost)
        if wait_s:
            return ApiError(
                429,
                "too_often",
                "too many requests from this address",
                fix=f"wait {wait_s:.1f} s",
                retry_after_s=wait_s,
            )
        length = header(scope, b"content-length")
        most = self._most_bytes(method, path)
        if length and (not length.isdigit() or len(length) > 18 or int(length) > most):
            return _too_large(most)
        return None

    def _most_bytes(self, method: str, path: str) -> int:
        settings = self._settings
        if path == f"{_API}/content":
            return settings.multipart_bytes + _SLACK_BYTES
        if method == "PATCH" and path.startswith(f"{_API}/uploads/"):
            return settings.upload_bytes
        if path.endswith("/feed"):
            return settings.feed_bytes
        if path.startswith(f"{_API}/drafts"):
            return settings.draft_bytes + _SLACK_BYTES
        return settings.json_bytes

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Pieces of the body, none of which may be late, and not more than is allowed."""
        most = self._most_bytes(scope["method"], scope["path"])
        patience_s, began = self._settings.body_s, time.monotonic()
        taken, is_whole = 0, False

        async def bounded() -> Message:
            nonlocal taken, is_whole
            if is_whole:
                # What comes now is the end of the connection, which may be far away.
                return await receive()
            try:
                async with asyncio.timeout(patience_s):
                    message = await receive()
            except TimeoutError:
                raise _refused(_too_slow()) from None
            if message["type"] != "http.request":
                return message
            taken += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if taken > most:
                raise _refused(_too_large(most))
            passed_s = time.monotonic() - began
            if not is_whole and passed_s > patience_s and taken < passed_s * _LEAST_BYTES_PER_S:
                raise _refused(_too_slow())
            return message

        return bounded

    def _note(self, scope: Scope, sent: "_Sent", began: float, request_id: str) -> None:
        route = scope.get("route")
        name = getattr(route, "path", "other")
        status = sent.status or 499
        # INVARIANT: no label is a stranger's word, or each new one would stay in memory for ever.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._counts.requests.labels(method, name, str(status)).inc()
        self._counts.seconds.labels(name).observe(sent.after_s or 0.0)
        structlog.get_logger().info(
            "request",
            id=request_id,
            method=method,
            route=name,
            path=scope["path"][:200],
            status=status,
            client=scope["trainyard.client"],
            ms=round((time.perf_counter() - began) * 1000, 1),
        )


class _Sent:
    status: int | None = None
    after_s: float | None = None


def cost_of(method: str, path: str, query: bytes = b"") -> float:
    """What a request takes of the allowance for what is costly."""
    if method in _SAFE:
        if _METRICS.fullmatch(path) and _points_in(query) > _FEW_POINTS:
            return _MANY_POINTS_COST
        return next((cost for known, cost in _COSTLY_ANSWERS if known.fullmatch(path)), 0.0)
    for start in _COSTLY:
        if path.startswith(_API + start):
            return _CHEAPER.get((method, start), 1.0)
    return 0.0


def _points_in(query: bytes) -> int:
    """The largest number of points that is asked for: whichever the route takes."""
    given = [value for name, value in parse_qsl(query.decode("latin-1")) if name == "points"]
    return max((int(one) for one in given if one.isdecimal() and len(one) < 10), default=0)


def _hosts(settings: Settings) -> frozenset[str]:
    """The names that the server answers to. Without one of its own it is on loopback alone."""
    if settings.public_url is not None:
        named = urlsplit(settings.public_url).hostname or ""
        return _LOOPBACK | {named.lower(), settings.host}
    return _LOOPBACK


def _too_large(most: int) -> ApiError:
    return ApiError(
        413,
        "too_large",
        f"the body is larger than the {most} bytes that are taken here",
        fix="upload large files with POST /api/v1/uploads",
    )


def _failed() -> ApiError:
    return ApiError(
        500,
        "failed",
        "the server failed; this is no fault of the request",
        fix="try again, and tell the operator the X-Request-Id",
    )


def _too_slow() -> ApiError:
    return ApiError(408, "too_slow", "the body came too slowly")


def _refused(error: ApiError) -> HTTPException:
    # FastAPI lets this one through, where it takes any other for a malformed body.
    detail: Mapping[str, object] = {"code": error.code, "message": error.message, "fix": error.fix}
    return HTTPException(error.status, detail)  # type: ignore[arg-type]
