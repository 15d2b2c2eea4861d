"""The ledger's book as bytes and back, for a store that is read by the same Trainyard only.

What another one wrote is not read: the book can be had again from the chain.
"""

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from trainyard.protocol import commitments, market
from trainyard.protocol.ledger import book as books
from trainyard.protocol.ledger.book import Book


class UnreadableBookError(ValueError):
    """These bytes are no book, or one of another Trainyard."""


def write_book(book: Book) -> bytes:
    text = json.dumps(_plain(book), separators=(",", ":")).encode()
    return _mark() + sha256(text).digest() + text


def read_book(data: bytes) -> Book:
    mark = _mark()
    digest, text = data[len(mark) : len(mark) + 32], data[len(mark) + 32 :]
    if not data.startswith(mark) or sha256(text).digest() != digest:
        raise UnreadableBookError("it is damaged, or was written by another Trainyard")
    try:
        book = _made(Book, json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableBookError(f"it is no book: {error}") from error
    if not isinstance(book, Book):
        raise UnreadableBookError("it is no book")
    return book


@cache
def _mark() -> bytes:
    """By all that makes a book out of events: other code would make another one."""
    ledger = sorted(Path(books.__file__).parent.glob("*.py"))
    sources = [*ledger, Path(market.__file__), Path(commitments.__file__)]
    return sha256(b"".join(sha256(one.read_bytes()).digest() for one in sources)).digest()


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return [_plain(getattr(value, one.name)) for one in fields(value)]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    return value


def _made(kind: Any, data: Any) -> Any:
    origin, given = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        [one] = [one for one in given if one is not NoneType]
        return None if data is None else _made(one, data)
    if origin is dict:
        return {_made(given[0], key): _made(given[1], one) for key, one in data}
    if origin is list:
        return [_made(given[0], one) for one in data]
    if origin is tuple:
        kinds = [given[0]] * len(data) if given[-1] is ... else given
        return tuple(_made(one, part) for one, part in zip(kinds, data, strict=True))
    if is_dataclass(kind) and isinstance(kind, type):
        hints, names = get_type_hints(kind), [one.name for one in fields(kind)]
        parts = zip(names, data, strict=True)
        return kind(**{name: _made(hints[name], part) for name, part in parts})
    if kind is bytes:
        return bytes.fromhex(data)
    return kind(data)
