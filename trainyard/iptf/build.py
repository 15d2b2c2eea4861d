"""Building the plugin with the machine's compiler, once for each of its versions."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainyard.iptf.settings import user_cache
from trainyard.protocol.errors import PermanentError

SOURCES = Path(__file__).with_name("plugin")
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
_LONGEST_BUILD_S = 600.0


class BuildError(PermanentError):
    """The plugin could not be built; says what is missing."""


@dataclass(frozen=True, slots=True)
class TensorFlow:
    """What the plugin is built against: the files of an installed TensorFlow."""

    version: str
    folder: Path

    @property
    def include(self) -> Path:
        return self.folder / "include"


def installed_tensorflow() -> TensorFlow:
    """The TensorFlow of this Python, found without importing it."""
    from importlib.metadata import PackageNotFoundError, distribution

    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        folder = Path(str(found.locate_file("tensorflow")))
        if (folder / "include").is_dir():
            return TensorFlow(found.version, folder)
    raise BuildError("TensorFlow is not installed here: pip install 'trainyard[tf]'")


def compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, g++, c++ or clang++."""
    chosen = os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in ("g++", "c++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError(
        "the ipfs:// plugin needs a C++ compiler once. Install one (Debian: apt-get install g++), "
        "or name yours in CXX"
    )


def build_plugin(tensorflow: TensorFlow | None = None, folder: Path | None = None) -> Path:
    """The plugin's shared object, built if it is not there yet."""
    tensorflow = tensorflow or installed_tensorflow()
    sources = sorted(SOURCES.glob("*.cc"))
    folder = folder or user_cache() / "plugin"
    target = folder / f"iptf-{_key(tensorflow)}.so"
    if not target.exists():
        framework = ["-L", str(tensorflow.folder), "-l:libtensorflow_framework.so.2"]
        compile_to(target, ["-shared", *map(str, sources), *framework], tensorflow.include)
    return target


def compile_to(target: Path, arguments: Sequence[str], include: Path) -> None:
    """Compile aside and move into place, so that two builds at once do no harm."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        made = Path(aside) / target.name
        command = [*compiler(), *FLAGS, f"-isystem{include}", "-o", str(made), *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LONGEST_BUILD_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"the ipfs:// plugin cannot be built: {error}") from error
        if done.returncode != 0:
            raise BuildError(
                f"the ipfs:// plugin cannot be built.\n{shlex.join(command)}\n{done.stderr}"
            )
        os.replace(made, target)


def _key(tensorflow: TensorFlow) -> str:
    """A name for all that the outcome depends on."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update("\0".join((tensorflow.version, str(tensorflow.folder), *FLAGS)).encode())
    return digest.hexdigest()[:24]
