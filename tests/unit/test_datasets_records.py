"""TFRecord framing, Examples and schemas, byte by byte."""

import io
from contextlib import suppress
from typing import Any

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.datasets.errors import CorruptRecordError, DatasetError, MismatchError
from trainyard.datasets.example import decode_example, decode_varints, encode_varints
from trainyard.datasets.schema import Encoding, Feature, Schema
from trainyard.datasets.tfrecord import frame, read_records, unframe

INT64 = st.integers(-(2**63), 2**63 - 1)
# What TensorFlow 2.21 wrote for the record b"trainyard".
TENSORFLOW_WROTE = bytes.fromhex("090000000000000037f97139747261696e79617264b0e25769")
# tf.train.Example of a=[1, -1, 300] (int64), b=[0.5] (float), c=[b"x", b""] (bytes).
TENSORFLOW_EXAMPLE = bytes.fromhex(
    "0a350a160a016112111a0f0a0d01ffffffffffffffffff01ac02"
    "0a0d0a0162120812060a040000003f0a0c0a016312070a050a01780a00"
)


def test_frame_is_the_one_that_tensorflow_writes() -> None:
    assert frame(b"trainyard") == TENSORFLOW_WROTE


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_records_come_back_from_a_file(records: list[bytes]) -> None:
    file = io.BytesIO(b"".join(frame(record) for record in records))

    assert list(read_records(file)) == records


def test_each_flipped_bit_of_a_frame_is_found() -> None:
    framed = frame(b"some data")

    for bit in range(len(framed) * 8):
        damaged = bytearray(framed)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptRecordError):
            unframe(bytes(damaged))
        with pytest.raises(CorruptRecordError):
            list(read_records(io.BytesIO(bytes(damaged))))


@pytest.mark.parametrize("kept", range(1, len(frame(b"some data"))))
def test_each_cut_inside_a_record_is_found(kept: int) -> None:
    cut = frame(b"some data")[:kept]

    with pytest.raises(CorruptRecordError):
        unframe(cut)
    with pytest.raises(CorruptRecordError, match="the file ends inside"):
        list(read_records(io.BytesIO(cut)))


def test_a_length_beyond_reason_is_refused_before_memory_is_taken() -> None:
    length = (1 << 40).to_bytes(8, "little")
    crc = google_crc32c.value(length)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    with pytest.raises(CorruptRecordError, match="at most"):
        list(read_records(io.BytesIO(length + masked.to_bytes(4, "little") + bytes(64))))


@given(st.lists(INT64, max_size=20))
def test_integers_come_back(values: list[int]) -> None:
    packed = encode_varints(np.array(values, dtype=np.int64))

    assert decode_varints(packed).tolist() == values


@pytest.mark.parametrize("packed", [b"\x80", b"\x01\xff", b"\x80" * 10 + b"\x01"])
def test_broken_integers_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="integer"):
        decode_varints(packed)


def test_example_is_the_one_that_tensorflow_writes() -> None:
    schema = Schema(
        (
            Feature.of("a", "int64", (3,)),
            Feature.of("b", "float32", (1,)),
            Feature.of("c", "bytes", (2,)),
        )
    )
    record = {
        "a": np.array([1, -1, 300]),
        "b": np.array([0.5], dtype=np.float32),
        "c": np.array([b"x", b""], dtype=object),
    }

    assert schema.encode(record, 0) == TENSORFLOW_EXAMPLE
    decoded = schema.decode(TENSORFLOW_EXAMPLE)
    assert decoded["a"].tolist() == [1, -1, 300]
    assert decoded["b"].tolist() == [0.5]
    assert decoded["c"].tolist() == [b"x", b""]


@given(st.binary(max_size=60))
def test_any_bytes_are_an_example_or_corrupt(message: bytes) -> None:
    with suppress(CorruptRecordError):  # any other error fails the test
        assert all(isinstance(name, str) for name in decode_example(message))


@pytest.mark.parametrize(
    ("value", "dtype", "encoding"),
    [
        (np.zeros((2, 3), np.uint8), "uint8", Encoding.RAW),
        (np.uint8(200), "uint8", Encoding.INT64),
        (np.array([[-5, 7]], np.int32), "int32", Encoding.INT64),
        (np.array([True, False]), "bool", Encoding.INT64),
        (np.array([1.5, -2.5], np.float32), "float32", Encoding.FLOAT),
        (np.array([0.1, 1e300]), "float64", Encoding.RAW),
        (np.array(3.25, ">f8"), "float64", Encoding.RAW),
        (np.array([2**64 - 1], np.uint64), "uint64", Encoding.RAW),
        (np.zeros((0, 4), np.float32), "float32", Encoding.FLOAT),
        (b"\x00jpeg\x00", "bytes", Encoding.BYTES),
        ("Zürich", "str", Encoding.BYTES),
        (np.array(["a", "ßß"]), "str", Encoding.BYTES),
        (7, "int64", Encoding.INT64),
        (0.1, "float64", Encoding.RAW),
    ],
    ids=str,
)
def test_values_come_back_with_type_and_shape(value: Any, dtype: str, encoding: Encoding) -> None:
    schema = Schema.of({"v": value})

    decoded = schema.decode(schema.encode({"v": value}, 0))["v"]

    assert schema.features == (
        Feature(name="v", dtype=dtype, shape=np.shape(value), encoding=encoding),
    )
    assert decoded.shape == np.shape(value)
    assert decoded.tolist() == (
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    )


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"x": np.zeros(3, np.float32)}, r"record 4: 'x' is float32 of shape \[3\], .* \[2\]"),
        ({"x": np.zeros(2)}, "record 4: 'x' is float64"),
        ({"y": np.zeros(2, np.float32)}, r"record 4 has \['y'\], the first one \['x'\]"),
        ({"x": np.zeros(2, np.float32), "y": 1}, "record 4 has"),
    ],
)
def test_record_unlike_the_first_is_named(record: dict[str, Any], message: str) -> None:
    schema = Schema.of({"x": np.zeros(2, np.float32)})

    with pytest.raises(MismatchError, match=message):
        schema.encode(record, 4)


@pytest.mark.parametrize(
    "value", [np.array([None, b"x"], dtype=object), np.array("2020-01-01", "datetime64[D]")]
)
def test_values_that_no_example_carries_are_refused(value: Any) -> None:
    with pytest.raises(DatasetError, match=r"encode it as bytes|convert them to one of"):
        Schema.of({"x": value})


@pytest.mark.parametrize(
    "feature",
    [
        Feature.of("x", "float32", (2,)),
        Feature.of("x", "int64", (3,)),
        Feature.of("x", "uint8", (3,)),
        Feature.of("x", "bytes", (3,)),
        Feature.of("y", "float32", (3,)),
    ],
    ids=str,
)
def test_record_that_does_not_fit_the_schema_is_corrupt(feature: Feature) -> None:
    message = Schema.of({"x": np.zeros(3, np.float32)}).encode({"x": np.zeros(3, np.float32)}, 0)

    with pytest.raises(CorruptRecordError, match=r"'x'"):
        Schema((feature,)).decode(message)
