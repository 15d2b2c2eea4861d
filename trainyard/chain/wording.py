"""How endpoints are named, and what their errors mean."""

import json
from typing import Any
from urllib.parse import urlsplit

# How providers say that a question about logs is too large. Each has words of its own.
_RANGE_WORDS = (
    "query returned more than",
    "block range",
    "range is too",
    "range too",
    "too many results",
    "too many blocks",
    "max results",
    "response size",
    "response is too",
    "query timeout",
    "limited to",
)
_BUSY_WORDS = ("rate limit", "too many requests", "request count", "capacity", "try again")


def endpoint_name(url: str) -> str:
    """Scheme, host and port: what people know it by, without what is secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"an endpoint is an http or https address, not one of {parts.scheme!r}")
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


def refuses_range(said: str) -> bool:
    """Whether an error of `eth_getLogs` means that fewer blocks could be answered."""
    return any(word in said for word in _RANGE_WORDS) and "rate" not in said.split()


def is_busy(said: str) -> bool:
    """Whether an error is about how much is asked, and not about what."""
    return any(word in said for word in _BUSY_WORDS)


def revert_data(data: Any) -> bytes:
    """The bytes of a revert, which some nodes wrap once more."""
    if isinstance(data, dict):
        data = data.get("data")
    try:
        text = json.loads(data) if isinstance(data, str) and data.startswith('"') else data
        return bytes.fromhex(text.removeprefix("Reverted ").removeprefix("0x"))
    except (ValueError, AttributeError):
        return b""
