"""The one text of a JSON document (RFC 8785), and reading texts that a stranger wrote."""

import hashlib
import json
from typing import Any, NoReturn

import rfc8785

from trainyard.protocol.manifest.errors import ManifestError

LARGEST_DOCUMENT_BYTES = 1 << 20
DEEPEST = 32


def canonical(document: Any) -> bytes:
    """`document` as its one text: sorted names, shortest numbers, no spaces."""
    return rfc8785.dumps(document)


def digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def read_json(text: bytes) -> Any:
    """A JSON value that is small, shallow, finite, and says nothing twice."""
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
    _check_depth(document)
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


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> ManifestError:
    return ManifestError("", f"objects nested over {DEEPEST} deep; no field needs that")
