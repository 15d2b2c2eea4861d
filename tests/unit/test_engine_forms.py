"""Many Examples at once: the same values, and the same refusals, as one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.datasets.errors import CorruptRecordError
from trainyard.datasets.example import encode_example
from trainyard.datasets.schema import Schema
from trainyard.engine.forms import Decoder, RecordError

FIRST: dict[str, Any] = {
    "image": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "label": np.int64(3),
    "points": np.array([1.5, -2.0], np.float32),
    "words": np.array([1, 2, 300], np.int32),
}
SCHEMA = Schema.of(FIRST)

records: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda image, label, points, words: {
        "image": np.array(image, np.uint8).reshape(2, 3),
        "label": np.int64(label),
        "points": np.array(points, np.float32),
        "words": np.array(words, np.int32),
    },
    st.lists(st.integers(0, 255), min_size=6, max_size=6),
    st.sampled_from([0, 9, 127, 128, 2**62, -1]),
    st.lists(st.floats(width=32), min_size=2, max_size=2),
    st.lists(st.sampled_from([0, 1, 127, 128, 2**31 - 1, -(2**31)]), min_size=3, max_size=3),
)


def decode(messages: list[bytes], names: list[str]) -> dict[str, Any]:
    arrays = {
        feature.name: np.empty((len(messages), *feature.shape), feature.dtype)
        for feature in SCHEMA.features
        if feature.name in names
    }
    Decoder(SCHEMA, names).decode(messages, arrays)
    return arrays


def outcome(message: bytes) -> dict[str, Any] | None:
    try:
        return SCHEMA.decode(message)
    except CorruptRecordError:
        return None


def assert_as_one_by_one(messages: list[bytes], names: list[str]) -> None:
    alone = [outcome(message) for message in messages]
    if None in alone:
        with pytest.raises(RecordError) as caught:
            decode(messages, names)
        assert alone[caught.value.place] is None
        return
    arrays = decode(messages, names)
    for place, record in enumerate(alone):
        assert record is not None
        for name in names:
            # By their bytes, for no NaN is equal to itself.
            assert arrays[name][place].tobytes() == record[name].tobytes()


@given(st.lists(records, min_size=1, max_size=30), st.sets(st.sampled_from(sorted(FIRST))))
def test_same_values_as_one_by_one(written: list[dict[str, Any]], names: set[str]) -> None:
    messages = [SCHEMA.encode(record, number) for number, record in enumerate(written)]

    assert_as_one_by_one(messages, sorted(names))


@given(st.data())
def test_same_refusals_as_one_by_one(data: st.DataObject) -> None:
    """One byte is changed in one of many: wherever it stands, nothing wrong is let through."""
    messages = [SCHEMA.encode(data.draw(records), 0)] * 4
    damaged = bytearray(messages[0])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))

    assert_as_one_by_one([*messages[:3], bytes(damaged), messages[3]], sorted(FIRST))


def test_integer_longer_than_there_are_is_refused() -> None:
    """Eleven bytes and two integers: as many ends as a record of the same length has."""
    good = SCHEMA.encode({**FIRST, "words": np.array([-1, 1, 128], np.int32)}, 0)
    tail = b"\xff" * 9 + b"\x01" + b"\x01" + b"\x80\x01"
    assert good.endswith(tail)
    bad = good.removesuffix(tail) + b"\xff" * 10 + b"\x01" + b"\x01" + b"\x01"

    with pytest.raises(RecordError, match="over 10 bytes") as caught:
        decode([good, good, bad], sorted(FIRST))
    assert caught.value.place == 2


def test_records_of_other_encoders_are_read_too() -> None:
    """Features in another order are as valid, and have no form."""
    ours = SCHEMA.encode(FIRST, 0)
    one_by_one = [
        encode_example({feature.name: feature.encode(np.asarray(FIRST[feature.name]))})
        for feature in reversed(SCHEMA.features)
    ]
    # The features of several messages, one after the other, are those of one.
    theirs = b"".join(one_by_one)

    assert_as_one_by_one([theirs, ours, theirs, ours], sorted(FIRST))


def test_most_records_are_decoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    decode_one = Schema.decode

    def counted(schema: Schema, message: bytes) -> Any:
        alone.append(message)
        return decode_one(schema, message)

    monkeypatch.setattr(Schema, "decode", counted)
    labels = [0, 5, 200, 7, 300, 9]
    messages = [SCHEMA.encode({**FIRST, "label": np.int64(label)}, 0) for label in labels * 50]

    assert decode(messages, ["label"])["label"].tolist() == labels * 50
    assert len(alone) == 2
