"""States: one state, one file, one hash."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from trainyard.engine.errors import StateError
from trainyard.engine.state import State, differing

NAMES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)
SHAPES = st.lists(st.integers(0, 3), max_size=3)
DTYPES = st.sampled_from(["float32", "float64", "int64", "uint8", "uint32", "bool", "float16"])


@st.composite
def tensors(draw: Any) -> dict[str, Any]:
    names = draw(st.lists(NAMES.filter(lambda name: name != "__metadata__"), unique=True))
    return {name: np.ones(draw(SHAPES), dtype=draw(DTYPES)) for name in names}


def some_state() -> State:
    return State({"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.int64(7)})


@given(tensors())
def test_bytes_give_the_same_state_again(found: dict[str, Any]) -> None:
    state = State(found)
    data = b"".join(state.parts())

    assert State.decode(data, "it") == state
    assert state.hash == hashlib.sha256(data).digest()
    assert state.size == len(data)


@given(tensors())
def test_any_safetensors_reader_opens_it(found: dict[str, Any]) -> None:
    opened = load(b"".join(State(found).parts()))

    assert opened.keys() == found.keys()
    for name, tensor in found.items():
        assert opened[name].dtype == tensor.dtype
        np.testing.assert_array_equal(opened[name], tensor)


def test_hash_does_not_depend_on_order_or_layout() -> None:
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    turned: dict[str, Any] = {"a": np.int64(7), "b": np.asfortranarray(matrix)}

    assert State(turned).hash == some_state().hash


@pytest.mark.parametrize(
    "change",
    [
        {"a": np.int64(8)},
        {"a": np.int32(7)},
        {"a": np.full(1, 7)},
        {"c": np.int64(7)},
        {"b": np.arange(6, dtype=np.float32)},
    ],
    ids=["value", "dtype", "shape", "name", "rank"],
)
def test_every_change_changes_the_hash(change: dict[str, Any]) -> None:
    assert State({**some_state().tensors, **change}).hash != some_state().hash


def test_hash_is_the_one_that_others_compute() -> None:
    assert some_state().hash.hex() == (
        "cf9b6214b00130244e9f422656b1c645fe6b8aed24b80b73439bd75a447c51d1"
    )


def test_names_what_differs() -> None:
    other = State({"a": np.int64(7), "b": np.zeros((2, 3), np.float32), "c": np.int64(1)})

    assert differing(some_state(), other) == ["b", "c"]
    assert differing(some_state(), some_state()) == []


def test_state_is_saved_and_loaded(tmp_path: Path) -> None:
    some_state().save(tmp_path / "it")

    assert State.load(tmp_path / "it") == some_state()
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_failed_save_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()

    with pytest.raises(StateError, match=r"cannot write the state .*it: Is a directory"):
        some_state().save(tmp_path / "it")

    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot read the state .*gone: No such file"):
        State.load(tmp_path / "gone")


def test_other_safetensors_files_are_refused() -> None:
    """Else one state would have many hashes."""
    with pytest.raises(StateError, match="no readable header"):
        State.decode(save(some_state().tensors), "it")
    with pytest.raises(StateError, match="not of the format"):
        State.decode(save(some_state().tensors, metadata={"format": "pt"}), "it")
    spaced = json.dumps(
        {
            "__metadata__": {"format": "trainyard-state/1"},
            "a": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
        }
    ).encode()
    with pytest.raises(StateError, match="not in the one form"):
        State.decode(len(spaced).to_bytes(8, "little") + spaced + bytes(8), "it")


@pytest.mark.parametrize("kept", [0, 7, 8, 40, -1])
def test_cut_off_files_are_refused(kept: int) -> None:
    data = b"".join(some_state().parts())

    with pytest.raises(StateError, match="it"):
        State.decode(data[:kept], "it")


@pytest.mark.parametrize(
    "spec",
    [
        {"dtype": "F99", "shape": [], "data_offsets": [0, 8]},
        {"dtype": "I64", "shape": [], "data_offsets": [0, 1 << 60]},
        {"dtype": "I64", "shape": [-1, 5], "data_offsets": [0, 8]},
        {"dtype": "I64", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]},
        {"dtype": "I64", "shape": "x", "data_offsets": [0, 8]},
        {"dtype": "I64", "shape": [], "data_offsets": [8, 0]},
        [],
    ],
)
def test_hostile_headers_are_refused(spec: Any) -> None:
    text = json.dumps({"__metadata__": {"format": "trainyard-state/1"}, "a": spec}).encode()

    with pytest.raises(StateError, match="'a' of it is malformed"):
        State.decode(len(text).to_bytes(8, "little") + text + bytes(8), "it")


def test_unknown_dtypes_are_refused() -> None:
    with pytest.raises(StateError, match="tensor a has dtype complex64"):
        State({"a": np.zeros(1, np.complex64)})


@pytest.mark.parametrize(
    ("name", "shape"), [("\\ud800", []), ("a", [0, 1 << 60])], ids=["surrogate", "size"]
)
def test_names_and_sizes_that_json_has_not_are_refused(name: str, shape: list[int]) -> None:
    end = 0 if shape else 8
    specs = f'"{name}": {{"dtype": "I64", "shape": {shape}, "data_offsets": [0, {end}]}}'
    text = f'{{"__metadata__": {{"format": "trainyard-state/1"}}, {specs}}}'.encode()

    with pytest.raises(StateError, match="it"):
        State.decode(len(text).to_bytes(8, "little") + text + bytes(end), "it")
