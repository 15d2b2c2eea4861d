"""The table of faults: cases are counted, and no failure is left out."""

from typing import Literal

import pytest

from scripts.fault_table import _FAULTS, _TESTS, Watcher

_When = Literal["setup", "call", "teardown"]
_Outcome = Literal["passed", "failed", "skipped"]


def report(test: str, when: _When, outcome: _Outcome, seconds: float) -> pytest.TestReport:
    nodeid = f"tests/market/test_deaths.py::{test}"
    return pytest.TestReport(nodeid, ("", 0, ""), {}, outcome, None, when, duration=seconds)


def test_cases_of_a_test_are_one_row() -> None:
    watcher = Watcher()
    for one in (
        report("test_dies[a]", "setup", "passed", 1.0),
        report("test_dies[a]", "call", "passed", 2.0),
        report("test_dies[b]", "setup", "passed", 0.5),
        report("test_dies[b]", "call", "failed", 1.0),
        report("test_dies[c]", "setup", "skipped", 0.0),
        report("test_goes", "setup", "failed", 1.0),
    ):
        watcher.pytest_runtest_logreport(one)

    dies, goes = (watcher.rows["market/test_deaths.py", f"test_{one}"] for one in ("dies", "goes"))
    assert (dies.cases, dies.seconds, dies.failed) == (3, 4.5, ["test_dies[b]"])
    assert dies.outcome == goes.outcome == "1 FAILED"


def test_all_files_of_the_table_are_there() -> None:
    assert all((_TESTS / file).is_file() for files in _FAULTS.values() for file in files)
