"""Data sets that are joined of pieces which others wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import Piece, join_pieces, open_shards, write_piece
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.schema import Feature, Schema

SCHEMA = Schema((Feature.of("label", "int64", ()),))


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    one = Content(EmbeddedStore(tmp_path / "store"))
    yield one
    one.close()


def pieces_of(content: Content, labels: range, most_bytes: int) -> list[Piece]:
    encoded = (SCHEMA.encode({"label": label}, label) for label in labels)
    found = []
    with content.store.batch() as batch:
        while (first := next(encoded, None)) is not None:
            found.append(write_piece(first, encoded, batch.put, most_bytes=most_bytes))
    return found


@pytest.mark.parametrize("most_bytes", [1, 100, 1 << 20])
def test_records_stay_in_their_order_and_none_is_lost(content: Content, most_bytes: int) -> None:
    parts = [pieces_of(content, part, most_bytes) for part in (range(50), range(50, 57))]

    joined = join_pieces(content, SCHEMA, [piece for part in parts for piece in part])

    found = open_shards(content, ContentPath(joined.cid))
    assert [int(record["label"]) for record in found] == list(range(57))
    assert int(found[50]["label"]) == 50
    assert found.origins().tolist() == list(range(57))
    assert joined.cid in content.store.pins()


def test_a_piece_ends_with_the_record_that_fills_it(content: Content) -> None:
    size = pieces_of(content, range(1), 1)[0].data.size

    found = pieces_of(content, range(7), 2 * size + 1)

    assert [piece.records for piece in found] == [3, 3, 1]


def test_no_pieces_are_no_data_set(content: Content) -> None:
    with pytest.raises(DatasetError, match="there are no records"):
        join_pieces(content, SCHEMA, [])
