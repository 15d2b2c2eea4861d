"""What the command remembers of a run, and what is kept of it."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.engine.nets import manifest_of, rounds_manifest_of
from trainyard.cli.engine import _report
from trainyard.cli.output import Output
from trainyard.cli.watching import Watch, watching
from trainyard.engine.events import Ended, Event, Finished, LeftOut, Restarted, Stepped
from trainyard.engine.journal import Entry, Measured
from trainyard.engine.tested import TESTED, keep_tested, read_tested

FOUND = Measured(loss=0.5, metrics={"accuracy": 0.25}, examples=4)


@pytest.mark.parametrize("slot", [0, 1])
def test_test_is_that_of_whichever_worker_did_it(slot: int) -> None:
    watch = Watch(Output(as_json=True), manifest_of("mlp"))

    watch(Ended(slot=slot, root="0" * 64, tested=FOUND))
    watch(Ended(slot=1 - slot, root="0" * 64))

    assert watch.tested == FOUND


def test_test_is_kept_with_its_run(tmp_path: Path) -> None:
    assert read_tested(tmp_path) is None

    keep_tested(tmp_path, FOUND)
    assert read_tested(tmp_path) == FOUND

    (tmp_path / TESTED).write_bytes(b"half")
    assert read_tested(tmp_path) is None


def test_time_lost_by_restarts_is_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch(Output(as_json=True), manifest_of("mlp", workers=2))

    for kept, lost_s in ((3, 2.5), (5, 4.25)):
        watch(Restarted(slot=1, reason="worker 1 is gone", kept=kept, lost_s=lost_s))

    assert (watch.restarts, watch.lost_s) == (2, 6.75)
    assert capsys.readouterr().err.splitlines() == [
        "worker 1 is gone; all went on from segment 2, 2.5 s lost",
        "worker 1 is gone; all went on from segment 4, 4.2 s lost",
    ]


def report_of(**figures: Any) -> list[str]:
    document = dict.fromkeys(
        ("tested", "energy_j_estimated", "score", "cid", "sent_bytes", "segments", "root", "folder")
    )
    return list(
        _report({**document, "stopped": "no", "train_s": 9.0, "trace_s": 0.5, **figures}, [])
    )


@pytest.mark.parametrize(
    ("restarts", "said"),
    [
        (0, []),
        (1, ["lost      6.8 s, started anew 1 time"]),
        (2, ["lost      6.8 s, started anew 2 times"]),
    ],
)
def test_report_says_what_was_lost_if_anything_was(restarts: int, said: list[str]) -> None:
    told = report_of(restarts=restarts, lost_s=6.75)

    assert [line for line in told if line.startswith("lost")] == said


class Screen:
    """A terminal whose clock goes on a second with each event."""

    def __init__(self) -> None:
        self._written = io.StringIO()
        self._now = 0.0
        self.console = Console(
            file=self._written, force_terminal=True, width=120, get_time=lambda: self._now
        )

    def show(self, manifest: Any, *events: Event) -> str:
        """What a bar shows in the end of a run of which these were told."""
        with watching(Output(as_json=False), manifest, self.console) as watch:
            for event in events:
                self._now += 1
                watch(event)
            self._now += 1
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._written.getvalue())
        drawn: list[str] = re.findall(r"training .*", plain)
        return drawn[-1]


def stepped(step: int, slot: int = 0, loss: float = 0.5, pace: float = 1200.0) -> Stepped:
    return Stepped(slot=slot, step=step, loss=loss, examples_per_s=pace)


def test_bar_shows_step_loss_pace_and_the_time_to_come() -> None:
    manifest = manifest_of("mlp")

    shown = Screen().show(manifest, stepped(1), stepped(3), stepped(5, loss=0.25, pace=2400.4))

    # Two steps a second, and six of twelve are left.
    assert re.search(r" 6/12 +loss 0\.2500, 2,400 examples/s 0:00:0[234]", shown)


def test_bar_of_a_cluster_counts_each_step_once() -> None:
    """All of its workers take all steps, of the whole batch."""
    manifest = manifest_of("mlp", workers=2)

    shown = Screen().show(manifest, stepped(2), stepped(7, slot=1, pace=5000.0))

    assert "  3/12 loss 0.5000, 1,200 examples/s" in shown


def test_bar_of_a_cluster_goes_back_to_what_was_kept() -> None:
    manifest = manifest_of("mlp", workers=2)
    lost = Restarted(slot=1, reason="gone", kept=2, lost_s=1)

    shown = Screen().show(manifest, stepped(8), lost, stepped(3))

    assert "  4/12 loss" in shown


def test_bar_of_rounds_adds_up_the_paces_of_workers() -> None:
    """Each takes its share of the batch, and one that is left out none."""
    manifest = rounds_manifest_of("mlp", 3)
    events: list[Event] = [stepped(1, slot, pace=400.0) for slot in range(3)]

    assert " 2/4 loss 0.5000, 1,200 examples/s" in Screen().show(manifest, *events)
    away = LeftOut(slot=0, round=0, reason="gone")
    assert " 3/4 loss 0.5000, 900 examples/s" in Screen().show(
        manifest, *events, away, stepped(2, 1, pace=500.0)
    )


def test_bar_follows_a_run_that_tells_of_segments_only() -> None:
    finished = Finished(entry=Entry(number=3, state="0" * 64, step=9))

    assert "  9/12 " in Screen().show(manifest_of("mlp"), finished)


def test_nothing_is_drawn_where_nobody_looks() -> None:
    written = io.StringIO()

    with watching(Output(as_json=False), manifest_of("mlp"), Console(file=written)) as watch:
        watch(stepped(1))

    assert written.getvalue() == ""
