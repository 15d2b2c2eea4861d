"""Cursors of pages: where the last page ended, in a form that nobody has to understand."""

import base64
import binascii
import json
from typing import Any, TypeAlias

from dapp.errors import invalid

LONGEST = 400
# Whole numbers as columns have them: PostgreSQL fails at larger ones instead of finding none.
INTEGER, BIG_INTEGER = range(2**31), range(2**63)
Kind: TypeAlias = type[str] | range


def encode_cursor(values: list[Any]) -> str:
    data = json.dumps(values, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_cursor(text: str, kinds: tuple[Kind, ...]) -> list[Any]:
    """The values of a cursor that this server can have given out, or a refusal."""
    try:
        if len(text) > LONGEST:
            raise ValueError("too long")
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not isinstance(values, list) or len(values) != len(kinds):
            raise ValueError("of another list")
        for value, kind in zip(values, kinds, strict=True):
            is_of_kind = type(value) is (int if isinstance(kind, range) else str)
            if not is_of_kind:
                raise ValueError("of another sort")
            if isinstance(kind, range) and value not in kind:
                raise ValueError("out of range")
            if isinstance(value, str) and not _is_text(value):
                raise ValueError("no text")
    except (ValueError, binascii.Error, RecursionError) as error:
        raise invalid(
            f"the cursor is {error}", field="query.cursor", fix="leave it out to begin anew"
        ) from None
    return values


def _is_text(value: str) -> bool:
    """Whether databases take it: JSON also has zeros and halves of letters."""
    return "\0" not in value and value.isprintable()
