"""Building the plugin, and finding the program to run, without TensorFlow's help."""

import os
import sys
from pathlib import Path

import pytest

from trainyard.iptf import build, running
from trainyard.iptf.build import BuildError, TensorFlow, build_plugin, compiler


@pytest.fixture
def tensorflow(tmp_path: Path) -> TensorFlow:
    return TensorFlow("2.21.0", tmp_path / "tensorflow")


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes what it was called with to the file after `-o`, and one line per call to a log."""
    path = tmp_path / "cxx"
    log = tmp_path / "calls"
    path.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\nwhile [ "$1" != -o ]; do shift; done\necho made > "$2"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    return log


def test_the_plugin_is_built_once_for_each_tensorflow(
    tmp_path: Path, tensorflow: TensorFlow, fake_compiler: Path
) -> None:
    first = build_plugin(tensorflow, tmp_path / "built")
    again = build_plugin(tensorflow, tmp_path / "built")
    other = build_plugin(TensorFlow("2.22.0", tensorflow.folder), tmp_path / "built")

    assert first == again != other
    assert first.read_text() == "made\n"
    calls = fake_compiler.read_text().splitlines()
    assert len(calls) == 2
    assert f"-isystem{tensorflow.include}" in calls[0]
    assert sorted(os.listdir(tmp_path / "built")) == sorted([first.name, other.name])


def test_a_change_of_a_source_builds_it_anew(
    tmp_path: Path, tensorflow: TensorFlow, fake_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "plugin"
    sources.mkdir()
    (sources / "a.cc").write_text("// one")
    monkeypatch.setattr(build, "SOURCES", sources)
    first = build_plugin(tensorflow, tmp_path / "built")
    (sources / "a.cc").write_text("// two")

    assert build_plugin(tensorflow, tmp_path / "built") != first


def test_a_failed_build_shows_what_the_compiler_said_and_leaves_nothing(
    tmp_path: Path, tensorflow: TensorFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "cxx"
    broken.write_text("#!/bin/sh\necho 'no such header' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))

    with pytest.raises(BuildError, match="no such header"):
        build_plugin(tensorflow, tmp_path / "built")
    assert os.listdir(tmp_path / "built") == []


def test_a_machine_without_a_compiler_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BuildError, match="apt-get install g"):
        compiler()


def test_python_is_this_python_and_programs_beside_it_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").touch()
    for name in ("tensorboard", "tool"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert running._program(["python", "-c", "1"]) == [str(tmp_path / "python"), "-c", "1"]
    assert running._program(["tool"]) == [str(tmp_path / "tool")]
    assert running._program(["sh"])[0].endswith("/sh")
    board = str(tmp_path / "tensorboard")
    assert running._program(["tensorboard", "--logdir", "x"]) == [
        *(board, "--logdir", "x", "--load_fast=false"),
    ]
    asked = running._program(["tensorboard", "--load_fast=auto"])
    assert asked == [board, "--load_fast=auto"]


def test_the_hook_goes_before_the_paths_that_were_there() -> None:
    paths = running._with_hook(f"/theirs{os.pathsep}{running.HOOK}").split(os.pathsep)

    assert paths[:2] == [str(running.HOOK), "/theirs"]
    assert paths.count(str(running.HOOK)) == 1
    assert (running.HOOK / "sitecustomize.py").is_file()
