"""Who asks: by the address of the connection, or what trusted proxies say of it."""

from starlette.types import Scope

_LONGEST = 64


def client_of(scope: Scope, proxies: int) -> str:
    """The client's address. Of X-Forwarded-For only what our own proxies wrote is believed."""
    client = scope.get("client")
    peer = str(client[0]) if client else "unknown"
    if not proxies:
        return peer
    said = header(scope, b"x-forwarded-for")
    hops = [hop.strip() for hop in said.split(",") if hop.strip()]
    if len(hops) < proxies:
        return peer
    return hops[-proxies][:_LONGEST]


def header(scope: Scope, name: bytes) -> str:
    for key, value in scope.get("headers", ()):
        if key == name:
            return bytes(value).decode("latin-1")
    return ""
