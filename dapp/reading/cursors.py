"""Cursors of pages: where the last page ended, in a form that nobody has to understand."""

import base64
import binascii
import json
from typing import Any

from dapp.errors import invalid

_LONGEST = 400


def encode_cursor(values: list[Any]) -> str:
    data = json.dumps(values, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_cursor(text: str, kinds: tuple[type, ...]) -> list[Any]:
    """The values of a cursor that this server gave out, or a refusal."""
    try:
        if len(text) > _LONGEST:
            raise ValueError("too long")
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not isinstance(values, list) or len(values) != len(kinds):
            raise ValueError("of another list")
        for value, kind in zip(values, kinds, strict=True):
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ValueError("of another sort")
            if isinstance(value, int) and not 0 <= value < 2**63:
                raise ValueError("out of range")
            if isinstance(value, str) and "\0" in value:
                raise ValueError("no text")
    except (ValueError, binascii.Error, RecursionError) as error:
        raise invalid(
            f"the cursor is {error}", field="query.cursor", fix="leave it out to begin anew"
        ) from None
    return values
