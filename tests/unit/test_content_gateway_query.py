"""What a request to the gateway asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.content.gateway_query import (
    BadRequestError,
    ByteRange,
    Format,
    NotAcceptableError,
    Scope,
    Wanted,
    parse_wanted,
)

RAW, CAR = "application/vnd.ipld.raw", "application/vnd.ipld.car"


@pytest.mark.parametrize(
    ("query", "accept", "wanted"),
    [
        ({"format": "raw"}, None, Wanted(Format.RAW)),
        ({"format": "car"}, "text/html", Wanted(Format.CAR)),
        ({}, RAW, Wanted(Format.RAW)),
        ({}, f"text/html, {CAR};dups=y;q=0.5", Wanted(Format.CAR, duplicates=True)),
        ({}, f"{CAR};q=0.5, {RAW};q=0.9", Wanted(Format.RAW)),
        ({}, f"{CAR};version=1;order=dfs;dups=n", Wanted(Format.CAR)),
        ({"format": "raw"}, CAR, Wanted(Format.RAW)),
        ({"format": "car", "car-dups": "n"}, f"{CAR};dups=y", Wanted(Format.CAR)),
        ({"format": "car", "car-order": "unk"}, None, Wanted(Format.CAR)),
        ({"format": "car", "dag-scope": "block"}, None, Wanted(Format.CAR, Scope.BLOCK)),
        (
            {"format": "car", "entity-bytes": "5:-3"},
            None,
            Wanted(Format.CAR, Scope.ENTITY, ByteRange(5, -3)),
        ),
        (
            {"format": "car", "dag-scope": "all", "entity-bytes": "0:*"},
            None,
            Wanted(Format.CAR, Scope.ENTITY, ByteRange(0, None)),
        ),
    ],
)
def test_query_and_header_are_understood(
    query: dict[str, str], accept: str | None, wanted: Wanted
) -> None:
    assert parse_wanted(query, accept) == wanted


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ({"format": "tar"}, None),
        ({"format": "dag-json"}, RAW),
        ({}, "text/html"),
        ({}, "application/json, text/html;q=0.9"),
        ({"format": "car", "car-version": "2"}, None),
        ({"format": "car", "car-order": "bfs"}, None),
        ({}, f"{CAR};version=2"),
    ],
)
def test_what_we_do_not_have_is_said_so(query: dict[str, str], accept: str | None) -> None:
    with pytest.raises(NotAcceptableError):
        parse_wanted(query, accept)


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ({}, None),
        ({}, "*/*"),
        ({}, f"{RAW};q=0"),
        ({"format": "car", "dag-scope": "some"}, None),
        ({"format": "car", "car-dups": "maybe"}, None),
        ({"format": "car", "entity-bytes": ""}, None),
        ({"format": "car", "entity-bytes": "5"}, None),
        ({"format": "car", "entity-bytes": "*:5"}, None),
        ({"format": "car", "entity-bytes": "a:b"}, None),
        ({"format": "car", "entity-bytes": "1:²"}, None),
        ({"format": "car", "entity-bytes": "1:" + "9" * 5000}, None),
    ],
)
def test_what_makes_no_sense_is_refused(query: dict[str, str], accept: str | None) -> None:
    with pytest.raises(BadRequestError):
        parse_wanted(query, accept)


def test_a_refusal_says_what_to_ask_for() -> None:
    with pytest.raises(NotAcceptableError, match=r"format=raw or \?format=car"):
        parse_wanted({"format": "tar"}, None)


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("0:*", 10, (0, 10)),
        ("0:0", 10, (0, 1)),
        ("2:5", 10, (2, 6)),
        ("2:99", 10, (2, 10)),
        ("-3:*", 10, (7, 10)),
        ("-99:*", 10, (0, 10)),
        ("4:-2", 10, (4, 9)),
        ("12:*", 10, (12, 10)),
        ("5:2", 10, (5, 3)),
        ("0:*", 0, (0, 0)),
    ],
)
def test_a_range_is_taken_inclusively(text: str, size: int, expected: tuple[int, int]) -> None:
    wanted = parse_wanted({"format": "car", "entity-bytes": text}, None)

    assert wanted.range is not None
    assert wanted.range.within(size) == expected
    assert str(wanted.range) == text


@given(
    st.sampled_from(Scope),
    st.none() | st.builds(ByteRange, st.integers(-99, 99), st.none() | st.integers(-99, 99)),
    st.booleans(),
)
def test_the_query_of_a_wish_asks_for_it(
    scope: Scope, asked: ByteRange | None, duplicates: bool
) -> None:
    wanted = Wanted(Format.CAR, scope if asked is None else Scope.ENTITY, asked, duplicates)
    query = dict(part.split("=", 1) for part in wanted.query.split("&"))

    assert parse_wanted(query, None) == wanted
