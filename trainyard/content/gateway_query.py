"""What a request to a Trustless Gateway asks for, taken apart without any I/O.

Follows the public specification of the Trustless Gateway and its partial and ordered CARs: the
query wins over the `Accept` header, and what we cannot send is refused rather than guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trainyard.protocol.errors import PermanentError

RAW_TYPE = "application/vnd.ipld.raw"
CAR_TYPE = "application/vnd.ipld.car"
_HINT = f"ask for ?format=raw or ?format=car, or accept {RAW_TYPE} or {CAR_TYPE}"


class Format(StrEnum):
    RAW = "raw"
    CAR = "car"


class Scope(StrEnum):
    """How much below the end of the path a CAR holds."""

    BLOCK = "block"
    ENTITY = "entity"
    ALL = "all"


class BadRequestError(PermanentError, ValueError):
    """A request that contradicts itself or is none."""


class NotAcceptableError(PermanentError, ValueError):
    """A request for a format that a trustless gateway does not have."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """First and last byte wanted; negative ones count from the end, and None is the end."""

    first: int
    last: int | None

    def within(self, size: int) -> tuple[int, int]:
        """Start, and end (not included), in a file of `size` bytes; empty where they cross."""
        start = self.first if self.first >= 0 else max(0, size + self.first)
        if self.last is None:
            return start, size
        last = self.last if self.last >= 0 else size + self.last
        return start, min(size, last + 1)

    def __str__(self) -> str:
        return f"{self.first}:{'*' if self.last is None else self.last}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form of an answer. Scope, range and duplicates matter to a CAR alone."""

    format: Format
    scope: Scope = Scope.ALL
    range: ByteRange | None = None
    duplicates: bool = False

    @property
    def content_type(self) -> str:
        if self.format is Format.RAW:
            return RAW_TYPE
        return f"{CAR_TYPE}; version=1; order=dfs; dups={'y' if self.duplicates else 'n'}"

    @property
    def query(self) -> str:
        """The query that asks for the same without an `Accept` header."""
        if self.format is Format.RAW:
            return "format=raw"
        parts = [
            "format=car",
            f"dag-scope={self.scope}",
            *([f"entity-bytes={self.range}"] if self.range else []),
            "car-version=1",
            "car-order=dfs",
            f"car-dups={'y' if self.duplicates else 'n'}",
        ]
        return "&".join(parts)


def parse_wanted(query: Mapping[str, str], accept: str | None) -> Wanted:
    """What the query and the `Accept` header ask for."""
    media, accepted, others = _accepted(accept)
    asked = query.get("format")
    if asked is None:
        if media is None and others:
            raise NotAcceptableError(f"there is no {others[0]!r} here: {_HINT}")
        if media is None:
            raise BadRequestError(f"the request names no format: {_HINT}")
        chosen = media
    elif asked in tuple(Format):
        chosen = Format(asked)
    else:
        raise NotAcceptableError(f"there is no format {asked!r} here: {_HINT}")
    if chosen is Format.RAW:
        return Wanted(Format.RAW)
    return _parse_car(query, accepted if media is Format.CAR else {})


def _parse_car(query: Mapping[str, str], accepted: Mapping[str, str]) -> Wanted:
    version = query.get("car-version") or accepted.get("version") or "1"
    if version != "1":
        raise NotAcceptableError(f"CARs here are of version 1, not {version!r}")
    order = query.get("car-order") or accepted.get("order") or "dfs"
    if order not in ("dfs", "unk"):
        raise NotAcceptableError(f"blocks come in the order dfs, not {order!r}")
    duplicates = query.get("car-dups") or accepted.get("dups") or "n"
    if duplicates not in ("y", "n"):
        raise BadRequestError(f"car-dups is y or n, not {duplicates!r}")
    scope = query.get("dag-scope") or Scope.ALL
    if scope not in tuple(Scope):
        raise BadRequestError(f"dag-scope is block, entity or all, not {scope!r}")
    range_text = query.get("entity-bytes")
    if range_text is None:
        return Wanted(Format.CAR, Scope(scope), None, duplicates == "y")
    return Wanted(Format.CAR, Scope.ENTITY, _parse_range(range_text), duplicates == "y")


def _parse_range(text: str) -> ByteRange:
    first, colon, last = text.partition(":")
    if not colon or not _is_offset(first) or not (last == "*" or _is_offset(last)):
        raise BadRequestError(f"entity-bytes is from:to with whole numbers or *, not {text!r}")
    return ByteRange(int(first), None if last == "*" else int(last))


def _is_offset(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 18


def _accepted(header: str | None) -> tuple[Format | None, Mapping[str, str], list[str]]:
    """The best format in an `Accept` header that we have, its parameters, and what we have not."""
    formats = {RAW_TYPE: Format.RAW, CAR_TYPE: Format.CAR}
    best: tuple[float, Format | None, dict[str, str]] = (0.0, None, {})
    others: list[str] = []
    for choice in (header or "").split(","):
        media, *rest = (part.strip() for part in choice.split(";"))
        parameters = {
            key.strip().lower(): value.strip().strip('"')
            for key, equals, value in (part.partition("=") for part in rest)
            if equals
        }
        known = formats.get(media.lower())
        if known is None:
            others += [media] if media not in ("", "*/*", "application/*") else []
            continue
        quality = _quality(parameters.pop("q", "1"))
        if quality > best[0]:
            best = (quality, known, parameters)
    return best[1], best[2], others


def _quality(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
