"""Silence: counted only while it is one's turn, and longer before the first step."""

from trainyard.engine.silence import Silence


def test_without_a_limit_anybody_may_be_silent() -> None:
    silence = Silence(None, 100.0)
    silence.start(0, 0.0)

    assert silence.left_s({0}, 1e9) is None
    assert silence.over({0}, 1e9) == {}


def test_first_step_takes_its_time() -> None:
    silence = Silence(5.0, 100.0)
    silence.start(0, 0.0)
    silence.hear(0, 10.0, is_step=False)

    assert silence.left_s({0}, 20.0) == 90.0
    assert silence.over({0}, 109.0) == {}
    assert silence.over({0}, 110.0) == {0: 100.0}


def test_who_has_taken_a_step_is_silent_for_less_until_it_is_started_anew() -> None:
    silence = Silence(5.0, 100.0)
    silence.start(0, 0.0)
    silence.hear(0, 10.0, is_step=True)
    assert silence.left_s({0}, 12.0) == 3.0
    assert silence.over({0}, 15.0) == {0: 5.0}

    silence.start(0, 15.0)

    assert silence.over({0}, 20.0) == {}


def test_silence_begins_with_ones_turn() -> None:
    silence = Silence(5.0, 5.0)
    for slot in (0, 1):
        silence.start(slot, 0.0)
    assert silence.left_s({0}, 4.0) == 1.0

    assert silence.left_s({0, 1}, 6.0) == 0.0
    assert silence.over({0, 1}, 6.0) == {0: 6.0}
    assert silence.over({0, 1}, 9.0) == {0: 9.0, 1: 5.0}
