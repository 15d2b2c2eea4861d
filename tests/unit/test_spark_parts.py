"""The parts of `trainyard.spark` that need no Spark."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.sdk.errors import RefusedError
from trainyard.spark.context import require_java
from trainyard.spark.errors import ExecutorError, NoSparkError
from trainyard.spark.failing import raised_in
from trainyard.spark.fields import Fields, MisfitError
from trainyard.spark.triggers import MaxEpoch, MaxIteration, Trigger


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        (5, "int32", np.int32(5)),
        (True, "uint8", np.uint8(1)),
        (np.float64(0.1), "float32", np.float32(0.1)),
        (np.int64(7), "float32", np.float32(7)),
        (np.float64("inf"), "float16", np.float16("inf")),
    ],
)
def test_a_value_takes_the_type_that_was_said(given: Any, dtype: str, expected: Any) -> None:
    found = Fields.of(["x"], [[]], [dtype]).row([given])["x"]

    assert (found.dtype, found.shape) == (np.dtype(dtype), ())
    assert found == expected


@pytest.mark.parametrize(
    ("given", "dtype", "words"),
    [
        (300, "uint8", "do not fit into uint8"),
        (-1, "uint16", "do not fit into uint16"),
        (1e300, "float32", "do not fit into float32"),
        (1.0, "int32", "holds float64, and int32 was said"),
        (1, "bool", "holds int64, and bool was said"),
        ("a", "int32", "which are no numbers"),
        ([1], "int32", r"the shape \[1\], and \[\] was said"),
    ],
)
def test_what_a_type_cannot_hold_is_a_misfit(given: Any, dtype: str, words: str) -> None:
    with pytest.raises(MisfitError, match=words):
        Fields.of(["x"], [[]], [dtype]).row([given])


@pytest.mark.parametrize(
    ("names", "shapes", "types", "words"),
    [
        ([], [], [], "give a list with the name"),
        ("xy", [[], []], ["int32"] * 2, "give a list with the name"),
        (["x", "y"], [[]], ["int32"] * 2, "2 names, 1 shapes and 2 types"),
        (["x", "x"], [[], []], ["int32"] * 2, "'x' is there twice"),
        (["a b"], [[]], ["int32"], "'a b' cannot be one"),
        (["x"], [[None, 3]], ["int32"], "give all lengths of one record"),
        (["x"], [[0]], ["int32"], "no length is below one"),
        (["x"], [[]], ["string"], "string is none that a model is trained on"),
    ],
)
def test_fields_that_make_no_record_are_refused(
    names: Any, shapes: Any, types: Any, words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        Fields.of(names, shapes, types)


def test_flat_values_are_given_their_shape() -> None:
    fields = Fields.of(["x", "y"], [[2, 2], [3]], ["int64", "uint8"], is_flat=True)

    found = fields.row(([1, 2, 3, 4], b"abc"))

    assert found["x"].tolist() == [[1, 2], [3, 4]]
    assert found["y"].tolist() == [97, 98, 99]


@pytest.mark.parametrize(
    ("trigger", "done", "until"),
    [
        (MaxEpoch(3), 0, {"epochs": 3}),
        # Three epochs of 100 records in batches of 32 are 9.4 steps.
        (MaxEpoch(3), 4, {"steps": 6}),
        (MaxIteration(10), 0, {"steps": 10}),
        (MaxIteration(10), 9, {"steps": 1}),
    ],
)
def test_a_trigger_says_what_is_left(trigger: Trigger, done: int, until: dict[str, int]) -> None:
    assert trigger.until(done, records=100, batch=32) == until


def test_a_trigger_that_is_reached_says_so() -> None:
    with pytest.raises(RefusedError, match=r"MaxEpoch\(epochs=1\) is reached: 4 of 4 steps"):
        MaxEpoch(1).until(4, records=100, batch=32)
    with pytest.raises(RefusedError, match=r"MaxIteration\(0\): give a whole number"):
        MaxIteration(0)


def test_executors_load_neither_tensorflow_nor_a_chain() -> None:
    """Each of their processes would take half a gigabyte for it."""
    code = (
        "import sys, trainyard.spark.writing\n"
        "print([one for one in ('tensorflow', 'keras', 'web3', 'pyspark') if one in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_all_public_names_are_there() -> None:
    import trainyard.spark

    for name in trainyard.spark.__all__:
        assert getattr(trainyard.spark, name).__name__ == name
    with pytest.raises(AttributeError, match=r"'trainyard.spark' has no attribute 'Optimizer'"):
        trainyard.spark.Optimizer  # noqa: B018


def test_where_there_is_no_java_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSparkError, match=r"there is no Java here.*apt-get install default-jre"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoSparkError, match=rf"JAVA_HOME is {tmp_path}, and no Java is there"):
        require_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(NoSparkError, match="is version 11: install Java 17 or newer"):
        require_java()


def test_the_last_error_of_ours_is_what_a_job_failed_of() -> None:
    text = (
        "Job aborted\n"
        "trainyard.spark.errors.ExecutorError: there is no folder /x\n"
        "The above exception was the direct cause of the following exception:\n"
        "trainyard.spark.errors.ExecutorError: partition 2: there is no folder /x; mount it\n"
        "\n\tat org.apache.spark.api.python.PythonRunner\n"
    )

    found = raised_in(text)

    assert isinstance(found, ExecutorError)
    assert str(found) == "partition 2: there is no folder /x; mount it"
    assert raised_in("ZeroDivisionError: integer division") is None
