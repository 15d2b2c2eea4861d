"""What the routes share: refusals as the OpenAPI document tells of them."""

from typing import Any

from fastapi import Query
from fastapi.params import Query as QueryParameter

from dapp.reading.cursors import LONGEST, encode_cursor
from dapp.schemas.values import Problem

_MEANINGS = {
    400: "Malformed",
    401: "Nobody is signed in, or the signature is wrong",
    403: "Not allowed",
    404: "There is none such",
    408: "The body came too slowly",
    409: "In conflict with what is there",
    413: "Too large",
    415: "Another media type is needed",
    422: "A value is not valid",
    429: "Too often",
    503: "The chain, the store or the database is away, or too many wait already",
    507: "The server keeps as much of others as it may",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These refusals, and those that any route may give."""
    return {
        status: {"model": Problem, "description": _MEANINGS[status]}
        for status in sorted({*statuses, 400, 422, 429, 503})
    }


def cursor_query(*example: int | str) -> QueryParameter:
    """The parameter of a list, with a cursor of its own sort for who tries it out."""
    found: QueryParameter = Query(
        max_length=LONGEST,
        description="`next` of the page before",
        examples=[encode_cursor(list(example))],
    )
    return found
