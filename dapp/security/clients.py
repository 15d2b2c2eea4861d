"""Who asks: by the address of the connection, or what trusted proxies say of it."""

from collections.abc import Iterator
from contextvars import ContextVar
from ipaddress import AddressValueError, IPv4Address, IPv6Address, IPv6Network

from starlette.types import Scope

_LONGEST = 64
# A home has as many addresses of IPv6 as it likes, and all of them have this beginning.
_HOME_BITS = 64
# For whom the server works at the moment, also in the threads that it does it in.
asking: ContextVar[str] = ContextVar("asking", default="")


def client_of(scope: Scope, proxies: int) -> str:
    """The client's address, of IPv6 the network that is surely one client's alone.

    Of X-Forwarded-For only what our own proxies wrote is believed.
    """
    client = scope.get("client")
    peer = str(client[0]) if client else "unknown"
    return _home(_said_by_proxies(scope, proxies) or peer)


def _said_by_proxies(scope: Scope, proxies: int) -> str | None:
    if not proxies:
        return None
    # A proxy may add a line of its own below that of the client: all of them are one list.
    said = ",".join(_lines(scope, b"x-forwarded-for"))
    hops = [hop.strip() for hop in said.split(",") if hop.strip()]
    return None if len(hops) < proxies else hops[-proxies][:_LONGEST]


def _home(address: str) -> str:
    try:
        found = IPv6Address(address.partition("%")[0].strip("[]"))
    except AddressValueError:
        return address
    mapped: IPv4Address | None = found.ipv4_mapped
    return str(mapped or IPv6Network((int(found), _HOME_BITS), strict=False))


def header(scope: Scope, name: bytes) -> str:
    return next(_lines(scope, name), "")


def _lines(scope: Scope, name: bytes) -> Iterator[str]:
    for key, value in scope.get("headers", ()):
        if key == name:
            yield bytes(value).decode("latin-1")
