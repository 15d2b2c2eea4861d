"""The one text of a JSON document (RFC 8785), and reading texts that a stranger wrote."""

import hashlib
import json
from typing import Any, NoReturn

import rfc8785

from trainyard.protocol.manifest.errors import ManifestError

LARGEST_DOCUMENT_BYTES = 1 << 20
DEEPEST = 32
# Each wrong value is worth a message to the checks that follow, so there must not be many.
MOST_MEMBERS = 1024
MOST_NUMBERS = 65_536


def canonical(document: Any) -> bytes:
    """`document` as its one text: sorted names, shortest numbers, no spaces."""
    return rfc8785.dumps(document)


def digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def read_json(text: bytes) -> Any:
    """A JSON value that is small, shallow and finite, and says nothing twice."""
    if len(text) > LARGEST_DOCUMENT_BYTES:
        raise ManifestError(
            "", f"{len(text)} bytes, where at most {LARGEST_DOCUMENT_BYTES} are read"
        )
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise _too_deep() from None
    except ManifestError:
        raise
    except ValueError as error:  # neither UTF-8, nor JSON, nor a number of sane length
        raise ManifestError("", f"not JSON: {error}") from None
    _check_extent(document)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ManifestError("", f"the member {twice[:64]!r} is given twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ManifestError("", f"{name} is no number in JSON; give a finite one")


def _check_extent(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    if not isinstance(value, dict | list):
        return []
    if len(value) > MOST_MEMBERS:
        is_numbers = isinstance(value, list) and all(type(one) in (int, float) for one in value)
        most = MOST_NUMBERS if is_numbers else MOST_MEMBERS
        if len(value) > most:
            kind = "members" if isinstance(value, dict) else "items"
            raise ManifestError("", f"{len(value)} {kind} in one place, where at most {most} are")
    return list(value.values()) if isinstance(value, dict) else value


def _too_deep() -> ManifestError:
    return ManifestError("", f"objects nested over {DEEPEST} deep; no field needs that")
