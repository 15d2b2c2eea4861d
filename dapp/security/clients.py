"""Who asks: by the address of the connection, or what trusted proxies say of it."""

from collections.abc import Iterator

from starlette.types import Scope

_LONGEST = 64


def client_of(scope: Scope, proxies: int) -> str:
    """The client's address. Of X-Forwarded-For only what our own proxies wrote is believed."""
    client = scope.get("client")
    peer = str(client[0]) if client else "unknown"
    if not proxies:
        return peer
    # A proxy may add a line of its own below that of the client: all of them are one list.
    said = ",".join(_lines(scope, b"x-forwarded-for"))
    hops = [hop.strip() for hop in said.split(",") if hop.strip()]
    if len(hops) < proxies:
        return peer
    return hops[-proxies][:_LONGEST]


def header(scope: Scope, name: bytes) -> str:
    return next(_lines(scope, name), "")


def _lines(scope: Scope, name: bytes) -> Iterator[str]:
    for key, value in scope.get("headers", ()):
        if key == name:
            yield bytes(value).decode("latin-1")
