"""What `iptf` puts in front of every Python program, and what it leaves as it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.iptf_world import PROGRAM_S, clean_environment
from trainyard.iptf.running import HOOK

# A finder of the user's own, which keeps count.
THEIRS = """
import builtins, sys
from importlib.machinery import PathFinder

class Theirs:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "tensorflow":
            return None
        asked.append(name)
        return PathFinder.find_spec(name, path, target)

builtins.asked = asked = []
sys.meta_path.append(Theirs)
sys.meta_path.remove(PathFinder)
sys.meta_path.append(PathFinder)
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of the user's own modules: one called TensorFlow, which is quick to import."""
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("name = 'of the user'\n")
    return tmp_path


def _python(theirs: Path, program: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**clean_environment(), "PYTHONPATH": os.pathsep.join([str(HOOK), str(theirs)])},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_sitecustomize_of_the_users_own_runs_as_if_there_were_no_other(theirs: Path) -> None:
    (theirs / "sitecustomize.py").write_text("import builtins\nbuiltins.ran = __file__\n")

    done = _python(theirs, "import sitecustomize; print(ran, sitecustomize.__file__)")

    assert done.stdout.split() == [str(theirs / "sitecustomize.py")] * 2


def test_a_finder_of_the_users_own_is_asked_for_tensorflow(theirs: Path) -> None:
    (theirs / "sitecustomize.py").write_text(THEIRS)

    done = _python(theirs, "import tensorflow; print(tensorflow.name, asked)")

    assert done.stdout == "of the user ['tensorflow']\n"
    assert "iptf: ipfs:// is not available here" in done.stderr, "the hook was there as well"


def test_tensorflow_is_found_by_the_finders_behind_the_hook(theirs: Path) -> None:
    program = (
        "import importlib.util, sys\n"
        "print(*(importlib.util.find_spec('tensorflow').origin for _ in range(2)))\n"
        "print(importlib.util.find_spec('no_such_module'))\n"
        "import tensorflow\n"
        "print(tensorflow.name, tensorflow.__loader__.get_filename('tensorflow'))\n"
    )

    done = _python(theirs, program)

    place = str(theirs / "tensorflow" / "__init__.py")
    assert done.stdout.splitlines() == [f"{place} {place}", "None", f"of the user {place}"]
    assert "iptf: ipfs:// is not available here" in done.stderr, "it is not TensorFlow, after all"


def test_a_program_that_needs_none_of_it_pays_for_none_of_it(tmp_path: Path) -> None:
    done = _python(tmp_path, "import sys; print('trainyard.iptf' in sys.modules)")

    assert (done.stdout, done.stderr) == ("False\n", "")
