"""Patterns for names, as TensorFlow's header describes them."""

import pytest

from trainyard.iptf.matching import compile_name, has_wildcard


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.tfrecord", ["a.tfrecord", ".tfrecord"], ["a.tfrecords", "tfrecord"]),
        ("part-?", ["part-1", "part-x"], ["part-", "part-12"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "^x"]),
        ("[^a-c]x", ["dx"], ["ax", "x"]),
        ("a[.]b", ["a.b"], ["axb"]),
        ("a\\*b", ["a*b"], ["axb", "a\\*b"]),
        ("a+b(c)", ["a+b(c)"], ["aab(c)"]),
        ("[z-a]", [], ["a", "z", "-"]),
        ("a[b", ["a[b"], ["ab"]),
        ("[\\d]", ["\\", "d"], ["1"]),
        ("*", ["", "anything\nat all"], []),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = compile_name(pattern)

    assert [name for name in yes if not matches(name)] == []
    assert [name for name in no if matches(name)] == []


def test_a_plain_name_is_no_pattern() -> None:
    assert not has_wildcard("train-00001.tfrecord")
    assert all(has_wildcard(text) for text in ("a*", "a?", "[a]", "a\\b"))
