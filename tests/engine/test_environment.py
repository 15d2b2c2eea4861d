"""Environment classes: what decides them, who is refused, and what the doctor says."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.engine import classes
from trainyard.engine.auditing import recompute
from trainyard.engine.auditor import Inputs
from trainyard.engine.classes import calibrate, find_class, require_class
from trainyard.engine.environment import EnvironmentClass, differences
from trainyard.engine.errors import RunError
from trainyard.engine.launching import run_local
from trainyard.engine.processor import read_processor
from trainyard.engine.runtime import Numerics
from trainyard.protocol.manifest import Manifest


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def folder(cache: Path) -> Path:
    return cache / "trainyard" / "environment"


@pytest.fixture(scope="module")
def here(folder: Path) -> EnvironmentClass:
    return find_class(folder=folder)


def of_class(environment: str) -> Manifest:
    return Manifest.of({**json.loads(manifest_of("mlp").canonical), "environment": environment})


def test_class_is_the_same_each_time(here: EnvironmentClass) -> None:
    again = calibrate()

    assert again.id == here.id
    assert again.environment.deterministic
    assert differences(here, again) == []


def test_class_is_remembered(here: EnvironmentClass, folder: Path) -> None:
    assert find_class(folder=folder) == here


def test_damaged_memory_is_not_believed(
    here: EnvironmentClass, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in folder.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-9])
    again = here.model_copy(update={"seconds": 1.5})
    monkeypatch.setattr(classes, "calibrate", lambda numerics: again)

    assert find_class(folder=tmp_path) == again
    assert find_class(folder=tmp_path) == again


def test_class_that_is_known_is_compared_part_by_part(
    here: EnvironmentClass, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    text = here.model_dump_json().replace('"keras":"', '"keras":"9.')
    (tmp_path / "told.json").write_text(text)
    other = EnvironmentClass.model_validate_json(text)

    with pytest.raises(RunError, match=rf"class {here.id}: keras is 3\S+, not 9\S+\. Its results"):
        require_class(of_class(other.id), tmp_path)


def test_another_library_makes_another_class(here: EnvironmentClass, folder: Path) -> None:
    """The calibration shows it, and not only the setting."""
    off = find_class(Numerics(onednn=False), folder=folder)

    assert off.id != here.id
    assert off.calibration.digest != here.calibration.digest
    assert differences(here, off)[0] == "onednn is off, not on"
    with pytest.raises(
        RunError, match=rf"{off.id}, and this machine is of class {here.id}: onednn"
    ):
        require_class(of_class(off.id), folder)


def test_manifest_of_another_class_is_refused(
    here: EnvironmentClass, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    files = write_data(tmp_path / "data")
    manifest = of_class("ab" * 32)
    said = (
        rf"is for environment class {'ab' * 32}, and this machine is of class {here.id}: .*"
        rf"tensorflow {here.environment.tensorflow}.*leave 'environment' out of the manifest"
    )

    with pytest.raises(RunError, match=said):
        run_local(manifest, files, tmp_path / "run")
    with pytest.raises(RunError, match=said):
        recompute(manifest, files, {0: Inputs(states=(tmp_path / "nothing",))})


def test_manifest_of_this_class_runs(
    here: EnvironmentClass, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))

    journal = run_local(of_class(here.id), write_data(tmp_path / "data"), tmp_path / "run")

    assert journal.entries[-1].step == 12


def test_manifest_without_a_class_asks_nothing(tmp_path: Path) -> None:
    require_class(manifest_of("mlp"), tmp_path)

    assert not list(tmp_path.iterdir())


def doctor(cache: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(Path(sys.executable).with_name("trainyard")), "doctor", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
    )


def test_doctor_tells_people(here: EnvironmentClass, cache: Path) -> None:
    told = doctor(cache)

    lines = dict(line.split(maxsplit=1) for line in told.stdout.splitlines())
    assert lines["class"] == here.id
    assert lines["calibration"].split()[0] == here.calibration.digest
    assert lines["onednn"] == "on"
    assert {"cores", "memory", "kubo"} <= lines.keys()
    assert told.returncode == ("PROBLEM:" in lines), told.stderr


def test_doctor_tells_programs(here: EnvironmentClass, cache: Path) -> None:
    told = doctor(cache, "--json")

    document = json.loads(told.stdout)
    assert document["class"] == here.id
    assert document["environment"] == here.environment.model_dump(mode="json")
    assert document["calibration"]["digest"] == here.calibration.digest
    assert document["cores"] >= 1
    assert document["free_disk_bytes"] > 0
    assert all(problem["fix"] for problem in document["problems"])
    assert told.returncode == any(problem["needed"] for problem in document["problems"])


def test_processor_is_read_from_what_linux_tells(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(
        "processor : 0\nmodel name : X\nflags : fpu avx2 avx512f fma avx amx_tile ht\n"
    )
    for number, fields in enumerate([("1", "Data", "48K"), ("2", "Unified", "2M")]):
        index = tmp_path / f"index{number}"
        index.mkdir()
        for name, value in zip(("level", "type", "size"), fields, strict=True):
            (index / name).write_text(value + "\n")

    found = read_processor(tmp_path / "cpuinfo", tmp_path)

    assert found.instructions == ("amx_tile", "avx", "avx2", "avx512f", "fma")
    assert (found.l1_data_bytes, found.l2_bytes) == (48 << 10, 2 << 20)


def test_machine_that_tells_nothing_has_empty_fields(tmp_path: Path) -> None:
    found = read_processor(tmp_path / "none", tmp_path)

    assert (found.instructions, found.l1_data_bytes, found.l2_bytes) == ((), 0, 0)
