"""The package as people get it: a wheel in an empty environment, and a clone without its page."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import trainyard
from scripts.build_page import WITHOUT
from trainyard.content.lifeline import dying_with_parent

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".uv" / "bin" / "uv"
_TIMEOUT_S = 300
# What a clone takes the page's packages from: fetching them anew is npm's business, and slow.
_PACKAGES = ROOT / "dapp" / "web" / "node_modules"


def run(
    *command: object, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        list(map(str, command)),
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        preexec_fn=dying_with_parent(),
    )


def checked(*command: object, environment: Mapping[str, str] | None = None) -> str:
    done = run(*command, environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has the locked packages and our wheel, and nothing else."""

    folder: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of somebody new: a home without anything, and no tree of ours around."""
        # Bytecode is kept, or every start would compile all of it anew.
        others = ("TRAINYARD_", "XDG_", "PYTHON")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(others)}
        return kept | {"HOME": str(self.home)}

    def trainyard(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = self.folder / "bin" / "trainyard"
        return run(command, *arguments, environment=self.environment, folder=self.home)

    def python(self, code: str) -> "subprocess.CompletedProcess[str]":
        command = self.folder / "bin" / "python"
        return run(command, "-c", code, environment=self.environment, folder=self.home)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    checked(ROOT / ".venv/bin/python", "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder, home = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("home")
    place = folder / "venv"
    checked(UV, "venv", "--quiet", "--python", "python3.11", place)
    target = os.environ | {"VIRTUAL_ENV": str(place)}
    locked = ("--require-hashes", ROOT / "locks" / "runtime.txt")
    checked(UV, "pip", "sync", "--quiet", *locked, environment=target)
    checked(UV, "pip", "install", "--quiet", "--no-deps", wheel, environment=target)
    return Installed(place, home)


def test_wheel_has_the_page_and_none_of_its_sources(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert "dapp/static/index.html" in names
    assert any(name.startswith("dapp/static/assets/") for name in names)
    assert [name for name in names if name.startswith(("dapp/web/", "tests/", "scripts/"))] == []


def test_archive_of_the_sources_has_the_page_built(tmp_path: Path) -> None:
    """Whoever makes a wheel of it needs no Node."""
    checked(ROOT / ".venv/bin/python", "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path)

    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"dapp/static/index.html", "scripts/build_page.py", "pyproject.toml"} <= names
    assert [name for name in names if "node_modules/" in name] == []


def test_command_says_its_version(installed: Installed) -> None:
    told = installed.trainyard("--version")

    assert told.stdout == f"trainyard {trainyard.__version__}\n", told.stderr


def test_import_needs_nothing_that_is_not_there(installed: Installed) -> None:
    told = installed.python(
        "import trainyard\nfor name in trainyard.__all__: getattr(trainyard, name)"
    )

    assert told.returncode == 0, told.stderr


def test_page_is_found_where_it_was_installed(installed: Installed) -> None:
    told = installed.python("from dapp.pages import BUILT; print(BUILT / 'index.html')")

    page = Path(told.stdout.strip())
    assert page.is_file(), told.stderr
    assert page.is_relative_to(installed.folder)


def test_training_without_tensorflow_says_which_extra_to_install(installed: Installed) -> None:
    told = installed.python(
        """
import trainyard

for call in (
    lambda: trainyard.fit(object(), [[0.0]], [0]),
    lambda: trainyard.quote(object(), [[0.0]], [0]),
    lambda: trainyard.attach(1),
):
    try:
        call()
    except trainyard.TrainyardError as error:
        print(error)
"""
    )

    assert told.stdout.count("pip install 'trainyard[tf]'") == 3, told.stdout + told.stderr


def test_doctor_says_what_an_empty_machine_lacks(installed: Installed) -> None:
    told = installed.trainyard("doctor", "--json")

    found = json.loads(told.stdout)
    assert told.returncode == 1, told.stderr
    problems = {one["what"]: one for one in found["problems"]}
    assert problems["TensorFlow is not installed"]["needed"]
    assert problems["TensorFlow is not installed"]["fix"].endswith("pip install 'trainyard[tf]'")
    # What is installed somewhere else is none of its business; a home without a key is.
    assert found["keystore"] is None
    assert found["market"] is None
    assert found["page"].endswith("dapp/static/index.html")
    assert all(one["fix"] for one in found["problems"])
    fixes = " ".join(one["fix"] for one in found["problems"])
    assert "'trainyard account new'" in fixes
    assert "'trainyard devnet up'" in fixes


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git knows or would know, as somebody gets them: nothing is built."""
    known = ("--cached", "--others", "--exclude-standard")
    names = checked("git", "-C", ROOT, "ls-files", "-z", *known).split("\0")
    folder = tmp_path / "clone"
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    assert not (folder / "dapp" / "static").exists()
    return folder


def without_node(folder: Path) -> dict[str, str]:
    """A machine on whose path there is nothing, and so no Node."""
    folder.mkdir()
    return os.environ | {"PATH": str(folder)}


def installing(clone: Path, target: Path) -> tuple[object, ...]:
    """As `pip install .` does, with an environment of its own to build in, but into a folder."""
    return UV, "pip", "install", "--python", sys.executable, "--no-deps", "--target", target, clone


def test_clone_is_installed_with_its_page(clone: Path, tmp_path: Path) -> None:
    (clone / "dapp" / "web" / "node_modules").symlink_to(_PACKAGES)

    checked(*installing(clone, tmp_path / "target"))

    assert (tmp_path / "target" / "dapp" / "static" / "index.html").is_file()


def test_clone_without_node_says_what_to_do(clone: Path, tmp_path: Path) -> None:
    told = run(*installing(clone, tmp_path / "target"), environment=without_node(tmp_path / "bin"))

    assert told.returncode != 0
    said = " ".join(told.stderr.split())
    assert (
        "the page of the dapp is not built, and cannot be: Node with npm is not installed" in said
    )
    assert f"or set {WITHOUT}=1 to install without the page" in said


def test_clone_is_installed_without_its_page_if_that_is_wanted(clone: Path, tmp_path: Path) -> None:
    wanted = without_node(tmp_path / "bin") | {WITHOUT: "1"}

    checked(*installing(clone, tmp_path / "target"), environment=wanted)

    assert (tmp_path / "target" / "dapp" / "pages.py").is_file()
    assert not (tmp_path / "target" / "dapp" / "static").exists()
