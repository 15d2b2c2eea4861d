"""What the end-to-end benchmark computes from what it measured, and how it counts."""

import json
import math
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.end_to_end import Bench, Measured, averaged, checking
from benchmarks.end_to_end_accounts import Account, Accounts, Process, adopting, work_in
from benchmarks.end_to_end_counting import counted
from benchmarks.end_to_end_figures import (
    COARSE,
    FIT,
    FLOWER,
    QUICK_LACKS,
    REPLICATE,
    ROUNDS,
    SINGLE,
    Line,
    Row,
    Scaling,
    apart,
    beside,
    figures,
    row_of,
)
from benchmarks.end_to_end_jobs import (
    Job,
    Moments,
    Outcome,
    load_weights,
    save_weights,
    weights_file,
)
from benchmarks.end_to_end_market import Traded, agreed, moments
from benchmarks.end_to_end_models import Trial
from benchmarks.end_to_end_nets import QUICK
from benchmarks.end_to_end_relays import relayed
from benchmarks.end_to_end_tables import lines_of, show
from benchmarks.reporting import MISSED, Figure, report
from tests.engine.nets import manifest_of
from trainyard.engine.journal import Journal
from trainyard.sdk.composing import fewest_segments, segment_length
from trainyard.sdk.receipts import AuditLine

_ROW = Row(
    net="net",
    way=FIT,
    goal=0.9,
    steps=1000,
    seconds=100.0,
    accuracy=0.95,
    cpu_s=200.0,
    reached_s=60.0,
)


def _rows() -> list[Row]:
    """Training takes 10 CPU-s and 0.2 a step; an audit 4 and 0.25 a step of its segment."""
    market = replace(_ROW, segments=50, seconds=116.0, steps_s=102.0)
    return [
        _ROW,
        replace(_ROW, way=FLOWER, seconds=120.0, reached_s=100.0, peer_bytes=4_000),
        replace(market, way=SINGLE, training_cpu_s=210.0, checking_cpu_s=2 * (4 + 0.25 * 20)),
        replace(
            market,
            way=COARSE,
            steps=500,
            segments=4,
            training_cpu_s=110.0,
            checking_cpu_s=2 * (4 + 0.25 * 125),
        ),
        replace(
            market,
            way=ROUNDS,
            seconds=90.0,
            reached_s=65.0,
            tail_s=10.0,
            peer_bytes=1_000,
            content_bytes=5_000,
            training_cpu_s=220.0,
            checking_cpu_s=11.0,
        ),
        replace(market, way=REPLICATE, training_cpu_s=210.0, checking_cpu_s=420.0),
    ]


def _scaling(rows: list[Row]) -> Scaling:
    found = Scaling.of([row for row in rows if row.way in (SINGLE, COARSE)], audits=2)
    assert found is not None
    return found


def _figures(rows: list[Row], *failed: str) -> dict[str, Figure]:
    """What has a goal, of one network."""
    found = figures(rows, {"net": _scaling(rows)}, audits=2, failed=failed)
    return {one.name: one for one in found}


def test_a_line_goes_through_two_points_and_between_three() -> None:
    assert Line.through([(1, 5), (3, 9)]) == Line(3, 2)
    assert Line.through([(0, 0), (1, 3), (2, 0)]) == Line(1, 0)
    with pytest.raises(ValueError, match="two points that lie apart"):
        Line.through([(2, 5), (2, 9)])


def test_the_share_of_audits_falls_to_their_part_of_the_segments() -> None:
    scaling = _scaling(_rows())

    assert scaling.training.fixed == pytest.approx(10)
    assert scaling.training.each == pytest.approx(0.2)
    assert scaling.audit.fixed == pytest.approx(4)
    assert scaling.audit.each == pytest.approx(0.25)
    # At 0.102 s a step, twenty minutes are some 11,765 steps: 118 make a segment, and up to 235
    # where epochs are to end with segments.
    steps = 1200 / 0.102
    expected = 2 * (4 + 0.25 * steps / 51) / (10 + 0.2 * steps)
    assert scaling.share(1200, audits=2) == pytest.approx(expected)
    endless = scaling.share(1e6, audits=2)
    assert endless == pytest.approx(2 / 50 * 0.25 / 0.2, rel=1e-3)


@pytest.mark.parametrize(("steps", "fewest"), [(11_765, 51), (1000, 53), (999, 26), (10, 10)])
def test_fit_cuts_a_task_into_so_few_segments_at_worst(steps: int, fewest: int) -> None:
    assert fewest_segments(steps) == fewest
    lengths = [segment_length(steps, epoch, parameters=1000) for epoch in range(1, steps + 1)]
    assert min(-(-steps // length) for length in lengths) >= fewest


def test_noise_makes_no_share() -> None:
    rows = [replace(row, checking_cpu_s=1.0) if row.way == COARSE else row for row in _rows()]
    noisy, sound = _scaling(rows), _scaling(_rows())
    assert noisy.audit.each < 0

    both = {"net": sound, "other": noisy}
    found = {one.name: one for one in figures(rows, both, audits=2)}

    assert math.isnan(found["audit_cpu_share_at_20min"].value)
    assert not found["audit_cpu_share_at_20min"].met


def test_figures_are_met_or_missed_by_what_was_measured() -> None:
    found = _figures(_rows())

    assert found["failed_ways"].value == 0
    assert found["market_over_fit_ratio"].value == pytest.approx(1.02)
    assert found["fixed_cost_s"].value == pytest.approx(14)
    assert found["rounds_over_flower_time"].value == pytest.approx(0.75)
    assert found["rounds_over_flower_bytes"].value == pytest.approx(1.5)
    assert {name for name, one in found.items() if not one.met} == {
        "audit_cpu_share_at_20min",
        "rounds_over_flower_bytes",
    }


def test_the_worst_net_counts() -> None:
    rows = _rows()
    slow = [
        replace(row, net="slow", steps_s=150.0 if row.way == SINGLE else row.steps_s)
        for row in rows
    ]
    both = rows + slow

    scalings = {"net": _scaling(rows), "slow": _scaling(slow)}
    found = {one.name: one for one in figures(both, scalings, audits=2)}

    assert found["market_over_fit_ratio"].value == pytest.approx(1.5)


def test_who_misses_the_accuracy_has_no_time_to_it() -> None:
    rows = _rows()
    low = [replace(row, reached_s=None) if row.way == ROUNDS else row for row in rows]
    found = _figures(low)
    assert math.isnan(found["rounds_over_flower_time"].value)
    assert not found["rounds_over_flower_time"].met

    low = [replace(row, reached_s=None) if row.way == FLOWER else row for row in rows]
    found = _figures(low)
    assert found["rounds_over_flower_time"].value == pytest.approx(75 / 120)


def test_time_to_the_goal_ends_with_settling_and_not_with_the_budget() -> None:
    [rounds] = [row for row in _rows() if row.way == ROUNDS]

    assert (rounds.to_goal_s, rounds.seconds) == (75.0, 90.0)


def test_of_a_way_that_was_gone_thrice_the_middle_counts() -> None:
    rows = [replace(_ROW, seconds=seconds) for seconds in (130.0, 90.0, 100.0)]

    assert row_of(rows, "net", FIT) == rows[2]


def test_of_tasks_that_were_measured_thrice_the_middle_says_how_long_a_step_takes() -> None:
    rows = [row for row in _rows() if row.way in (SINGLE, COARSE)]
    more = [replace(row, steps_s=row.steps_s + 90) for row in rows]
    thrice = [*more, *rows, *(replace(row, steps_s=row.steps_s - 30) for row in rows)]

    once, found = Scaling.of(rows, 2), Scaling.of(thrice, 2)

    assert once is not None
    assert found is not None
    assert found.step_s == once.step_s == pytest.approx(0.102)
    assert (once.repeats, found.repeats) == (1, 3)
    assert lines_of({"net": once}).endswith("of one run of each length: noisy")
    assert "noisy" not in lines_of({"net": found})


def test_of_keras_that_was_measured_twice_all_is_the_mean() -> None:
    one = replace(_ROW, energy_j=10.0)
    other = replace(one, seconds=120.0, cpu_s=220.0, reached_s=80.0, energy_j=30.0)
    slow = replace(one, net="slow", reached_s=None)
    market = replace(_ROW, way=SINGLE)

    found = averaged([one, market, market, other, slow, replace(slow, reached_s=80.0)])

    mean = replace(one, seconds=110.0, cpu_s=210.0, reached_s=70.0, energy_j=20.0)
    assert found == [mean, market, market, slow]


def test_shares_without_a_goal_are_told_too() -> None:
    found = beside(_rows())

    assert found["audit_cpu_share"] == pytest.approx(18 / 210)
    assert found["replicate_cpu_share"] == pytest.approx(2.0)
    assert found["rounds_over_flower_peer_bytes"] == pytest.approx(0.25)


def test_what_the_quick_form_leaves_out_is_told_as_none_and_no_missed_goal() -> None:
    rows = [row for row in _rows() if row.way not in (COARSE, REPLICATE)]
    told = figures(rows, {"net": None}, audits=2)

    sought, unmeasured = apart(told, QUICK_LACKS)

    assert unmeasured == {"audit_cpu_share_at_20min": None}
    assert beside(rows)["replicate_cpu_share"] is None
    assert {one.name for one in sought} | set(unmeasured) == set(_figures(_rows()))
    assert all(math.isfinite(one.value) for one in sought)


def test_the_share_of_audits_is_that_of_the_net_that_has_the_most() -> None:
    short = [
        replace(row, net="short", training_cpu_s=90.0) if row.way == SINGLE else row
        for row in _rows()
    ]

    assert beside([*_rows(), *short])["audit_cpu_share"] == pytest.approx(18 / 90)


def test_the_wait_for_challengers_is_part_of_the_fixed_cost_and_told_apart() -> None:
    rows = [replace(row, challenge_s=5.0) if row.way == SINGLE else row for row in _rows()]

    told = _figures(rows)["fixed_cost_s"]
    apart = beside(rows)

    assert told.value == pytest.approx(14)
    assert "5 s for challengers" in told.what
    assert apart["challenge_window_s"] == 5
    assert apart["fixed_cost_without_challenge_window_s"] == pytest.approx(9)


@pytest.mark.parametrize(
    ("way", "lacking"),
    [
        (FIT, {"market_over_fit_ratio"}),
        (FLOWER, {"rounds_over_flower_time", "rounds_over_flower_bytes"}),
        (COARSE, {"audit_cpu_share_at_20min"}),
        (SINGLE, {"market_over_fit_ratio", "fixed_cost_s", "audit_cpu_share_at_20min"}),
    ],
)
def test_a_way_that_fails_costs_its_own_figures_alone(way: str, lacking: set[str]) -> None:
    rows = [row for row in _rows() if row.way != way]
    scaling = Scaling.of([row for row in rows if row.way in (SINGLE, COARSE)], audits=2)

    found = figures(rows, {"net": scaling}, audits=2, failed=[f"net, {way}: why"])

    assert {one.name for one in found if math.isnan(one.value)} == lacking
    assert not found[0].met


def test_what_is_measured_is_told_at_once_and_outlives_what_fails_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Measured:
        raise SystemExit("no such thing")

    bench = Bench(tmp_path, [QUICK], quick=True)
    measured = Measured(_ROW, Trial(tmp_path, 0.9, []))

    found = bench.tried_out(QUICK, FIT, lambda: measured) + bench.tried_out(QUICK, FLOWER, fail)

    assert found == [measured]
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["way"], first["seconds"]) == (FIT, 100.0)
    assert second == {"failed": "lenet5, Flower FedAvg: SystemExit: no such thing"}
    show([_ROW], bench.failures, "none", quick=True)
    table = capsys.readouterr().out
    assert "FAILED" in table
    assert "payloads by their journals" in " ".join(table.split())
    assert "int8" in table


def test_an_audit_counts_that_was_answered_with_what_was_opened() -> None:
    def line(answer: str, opened: str) -> AuditLine:
        return AuditLine(
            segment=0,
            member=f"0x{'11' * 20}",
            answer=f"0x{answer * 32}",
            opened=f"0x{opened * 32}",
        )

    lines = [line("aa", "aa"), line("aa", "bb"), line("00", "aa"), line("00", "00")]

    assert agreed(lines) == 1


def test_of_rounds_the_states_after_merges_are_tried(tmp_path: Path) -> None:
    manifest = manifest_of(
        "mlp", mode="rounds", workers=2, until={"steps": 8}, rounds={"local_steps": 3}
    )
    paths = [tmp_path / f"{number}" for number in range(manifest.plan.segments + 1)]
    for number, path in enumerate(paths):
        path.touch()
        os.utime(path, (100 + number, 100 + number))
    journal = SimpleNamespace(manifest=manifest.canonical, path_of=paths.__getitem__)

    found = moments(cast(Journal, journal), 90.0, 24)

    # A round is two parts and their merge.
    assert [one.path.name for one in found] == ["3", "6", "9"]
    assert [one.at_s for one in found] == [13.0, 16.0, 19.0]
    # Fewer of them, and always the last.
    fewer = moments(cast(Journal, journal), 90.0, 2)
    assert [one.path.name for one in fewer] == ["3", "9"]


def test_who_takes_most_has_trained_and_the_rest_has_checked(tmp_path: Path) -> None:
    def traded(*trainers: float) -> Traded:
        return Traded(
            outcome=Outcome(seconds=1.0),
            cpu_s=100.0,
            trainers=trainers,
            auditors=7.0,
            steps_s=1.0,
            peer_bytes=0,
            content_bytes=0,
            gas=0,
            segments=1,
            audits=2,
            challenge_s=5.0,
            moments=(),
            manifest=tmp_path,
        )

    job = Job(
        data=tmp_path, model=tmp_path, folder=tmp_path, records=1, epochs=1, batch=1, rate=0.1
    )
    both = replace(job, workers=2)
    copied = replace(job, verify="replicate:3")

    assert checking(job, traded(30, 1, 1)) == {"training_cpu_s": 30, "checking_cpu_s": 7}
    assert checking(both, traded(30, 20, 1)) == {"training_cpu_s": 50, "checking_cpu_s": 7}
    assert checking(copied, traded(30, 29, 28)) == {"training_cpu_s": 30, "checking_cpu_s": 57}


def test_the_last_line_is_json_also_of_what_is_no_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = report(
        "t",
        [Figure("a", "a", math.nan, 1.0), Figure("b", "b", 2.0, 3.0), Figure("e", "e", 2.5, 1.0)],
        "c",
        {"d": [1]},
    )

    said, complaint = capsys.readouterr()
    assert (code, complaint) == (MISSED, "MISSED: a, e by 1.5\n")
    assert json.loads(said.splitlines()[-1]) == {"a": None, "b": 2.0, "e": 2.5, "d": [1]}
    assert "MISSED by 1.5" in said


@pytest.mark.parametrize(
    ("values", "is_missed"),
    [((1.0, 1.0), False), ((1.0, 9.0), False), ((9.0, 1.0), False), ((9.0, 9.0), True)],
)
def test_of_figures_that_stand_in_for_each_other_one_has_to_hold(
    capsys: pytest.CaptureFixture[str], values: tuple[float, float], is_missed: bool
) -> None:
    figures = [Figure(f"{one}", "", value, 5.0, either="x") for one, value in enumerate(values)]
    assert report("t", [*figures, Figure("b", "b", 2.0, 3.0)], "c") == (MISSED if is_missed else 0)


def test_every_benchmark_with_goals_ends_by_whether_they_are_met() -> None:
    for path in Path("benchmarks").glob("*.py"):
        text = path.read_text()
        if path.name != "reporting.py" and ("import Figure, report" in text or "code_of" in text):
            assert "sys.exit(report(" in text or "sys.exit(code_of(" in text, path


# Works for half a second in a child that nobody waits for.
_ORPHAN = """
import os, sys, time
if os.fork() == 0:
    if os.fork() == 0:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
    os._exit(0)
os.wait()
"""


def test_the_time_of_orphans_is_counted(tmp_path: Path) -> None:
    assert counted([sys.executable, "-c", _ORPHAN], tmp_path) >= 0.45


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        counted([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path)


# Nobody waits for what works here: the kernel forgets it when it ends.
_FORGOTTEN = """
import contextlib, os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
code = "import time\\nwhile time.process_time() < 2.0: pass"
subprocess.Popen([sys.executable, "-c", code])
with contextlib.suppress(ChildProcessError):
    # Where they are forgotten, this waits until none is left, and has none to tell of.
    os.wait()
"""


def test_time_that_the_kernel_forgets_is_counted(tmp_path: Path) -> None:
    # All but what it took after the last look.
    assert counted([sys.executable, "-c", _FORGOTTEN], tmp_path) >= 0.6


def test_a_tree_has_its_descendants_and_those_they_waited_for() -> None:
    known = {
        1: Process(0, 100.0, 100.0),
        2: Process(1, 50.0, 3.0),
        3: Process(2, 4.0, 5.0),
        4: Process(3, 6.0, 0.0),
        5: Process(1, 70.0, 70.0),
    }

    assert work_in(known, 2) == 3.0 + 4.0 + 5.0 + 6.0


def test_what_a_tree_has_lost_stays_in_its_account() -> None:
    account = Account()
    for seen in (1.0, 5.0, 2.0, 2.5):
        account.take(seen)

    assert account.total_s == 5.5


def test_a_tree_that_adopts_has_the_time_of_its_orphans() -> None:
    # The pipe ends when the orphan does, however long it waits for a core.
    told = (
        f"import os\nheard, kept = os.pipe()\n{_ORPHAN}\nos.close(kept)\nos.read(heard, 1)\n"
        "print(flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        adopting([sys.executable, "-c", told]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with Accounts([process.pid]) as accounts:
            process.stdout.readline()
            assert accounts.work_s()[process.pid] >= 0.45
            assert accounts.looking_s > 0
        process.communicate()


def test_jobs_outcomes_and_weights_come_back_as_they_were(tmp_path: Path) -> None:
    job = Job(
        data=tmp_path,
        model=tmp_path / "model.keras",
        folder=tmp_path / "job",
        records=1200,
        epochs=2,
        batch=100,
        rate=0.001,
        local_steps=6,
    )
    path = job.save()
    Outcome(seconds=1.5, sent_bytes=7, task=3).save(job)
    save_weights(weights_file(job), [[1.0, 2.0], [[3.0]]])

    assert Job.load(path) == job
    assert (job.steps, job.rounds) == (24, 4)
    assert Outcome.load(job) == Outcome(seconds=1.5, sent_bytes=7, task=3)
    assert [one.tolist() for one in load_weights(weights_file(job))] == [[1.0, 2.0], [[3.0]]]
    assert sorted(job.order(1)) == list(range(1200))
    assert (job.order(0) != job.order(1)).any()
    keeping = Moments(job, time.time() - 2)
    for value in (5.0, 6.0):
        keeping.keep([[value]])
    kept = Moments.of(job)
    assert [load_weights(one.path)[0].tolist() for one in kept] == [[5.0], [6.0]]
    assert 2.0 <= kept[0].at_s <= kept[1].at_s


def test_a_relay_counts_what_passes_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with relayed(server.getsockname()[1]) as relay:
            with socket.create_connection(("127.0.0.1", relay.port)) as one:
                one.sendall(b"question")
                one.shutdown(socket.SHUT_WR)
                other, _ = server.accept()
                with other:
                    assert other.makefile("rb").read() == b"question"
                    other.sendall(b"an answer")
                assert one.makefile("rb").read() == b"an answer"
            assert relay.bytes == len(b"question") + len(b"an answer")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", relay.port))
