"""What people see of a task: a bar where they sit at a terminal, else lines."""

import io
import sys

import pytest

from trainyard.cli.tasks import show_points
from trainyard.sdk.epochs import Point
from trainyard.sdk.showing import shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_has_steps_and_figures_and_lines_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    with shown("task 7", 16) as show:
        show.say("worker 1 joined [red]")
        show.warn("the chain does not answer")
        show_points(show, [Point(0, 8, {"loss": 0.5}), Point(0, 8, {"val_loss": 0.25})])

    said = terminal.getvalue()
    for line in ("worker 1 joined [red]", "the chain does not answer", "task 7", "8/16"):
        assert line in said
    # A point of the end of an epoch has figures of validation alone, and takes away none.
    assert "loss 0.5000" in said[said.rindex("8/16") :]
    assert "nan" not in said


def test_without_a_terminal_there_are_lines_for_who_asks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for verbose in (1, 2):
        with shown("task 7", 16, verbose) as show:
            show.say("worker 1 joined")
            show_points(show, [Point(0, 8, {"loss": 0.5})])
    with shown("task 7", 16) as show:
        show.say("nobody hears it")

    assert capsys.readouterr() == ("", "worker 1 joined\n" * 2)
