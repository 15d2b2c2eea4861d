"""Which environment class this machine is of, found out once and remembered.

TensorFlow is never imported here: the calibration runs in processes of its own.
"""

import fcntl
import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from trainyard.engine.calibration import PROGRAMS, THREADS, Calibrated, CalibrationJob, manifest_of
from trainyard.engine.environment import Calibration, EnvironmentClass, differences
from trainyard.engine.errors import RunError
from trainyard.engine.events import Failed, read_event
from trainyard.engine.launching import processes
from trainyard.engine.processor import processor_name, read_processor
from trainyard.engine.runtime import BEST, Numerics
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.manifest.canonical import canonical, digest

_PACKAGES = ("tensorflow-cpu", "tensorflow", "keras", "numpy")


def find_class(
    numerics: Numerics = BEST, *, fresh: bool = False, folder: Path | None = None
) -> EnvironmentClass:
    """This machine's class, from the cache if nothing that decides it has changed since."""
    folder = folder or cache_folder()
    path = folder / f"{_key(numerics)}.json"
    kept = None if fresh else _read(path)
    if kept is not None:
        return kept
    with _only_one(folder):
        # Whoever had the lock before may have found it out.
        kept = None if fresh else _read(path)
        if kept is not None:
            return kept
        found = calibrate(numerics)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        unfinished.write_text(found.model_dump_json())
        unfinished.replace(path)
        return found


def require_class(manifest: Manifest, folder: Path | None = None) -> None:
    """Refuse a manifest that is for another class than this machine's."""
    if manifest.environment is None:
        return
    folder = folder or cache_folder()
    found = find_class(folder=folder)
    if found.id == manifest.environment:
        return
    known = next((one for one in _known(folder) if one.id == manifest.environment), None)
    if known is None:
        fields = ", ".join(f"{name} {value}" for name, value in found.environment.fields.items())
        what = (
            f"here it is {fields}, calibration {found.calibration.digest[:16]}; 'trainyard doctor' "
            "on both machines shows what differs"
        )
    else:
        what = "; ".join(differences(known, found))
    raise RunError(
        f"the manifest is for environment class {manifest.environment}, and this machine is of "
        f"class {found.id}: {what}. Its results would have other bits: run it on a machine of "
        "that class, or leave 'environment' out of the manifest"
    )


def calibrate(numerics: Numerics = BEST) -> EnvironmentClass:
    """Run the fixed programs, in one process for each number of threads."""
    began = time.perf_counter()
    with ThreadPoolExecutor(max_workers=len(THREADS)) as pool:
        runs = list(pool.map(lambda threads: _run(threads, numerics), THREADS))
    return EnvironmentClass(
        environment=runs[0].environment,
        calibration=Calibration(states={run.threads: run.states for run in runs}),
        seconds=round(time.perf_counter() - began, 3),
    )


def cache_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "trainyard" / "environment"


def _run(threads: int, numerics: Numerics) -> Calibrated:
    with tempfile.TemporaryDirectory(prefix="trainyard-calibration-") as name:
        path = Path(name) / "job.json"
        path.write_text(CalibrationJob(threads=threads, numerics=numerics).model_dump_json())
        module = "trainyard.engine.calibration"
        with processes(module, path, path.with_name("log")) as lines:
            for line in lines:
                if b'"event":"failed"' in line:
                    failure = read_event(line)
                    raise RunError(failure.reason if isinstance(failure, Failed) else "")
                return Calibrated.model_validate_json(line)
    raise RunError("the calibration ended and said nothing")


def _key(numerics: Numerics) -> str:
    """Names all that a class can depend on, as far as it is seen without TensorFlow."""
    document = {
        "packages": {name: _package(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "processor": read_processor().model_dump(mode="json"),
        "processor_name": processor_name(),
        "numerics": numerics.model_dump(),
        "programs": [manifest_of(name, 1).digest.hex() for name in PROGRAMS],
    }
    return digest(canonical(document)).hex()


def _package(name: str) -> str | None:
    """The version, and the list of its files with their hashes: builds may share a version."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    files = hashlib.sha256((found.read_text("RECORD") or "").encode()).hexdigest()
    return f"{found.version} {files}"


def _read(path: Path) -> EnvironmentClass | None:
    """What is kept there; a damaged file is as good as none."""
    try:
        return EnvironmentClass.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _known(folder: Path) -> Iterator[EnvironmentClass]:
    """All classes that this machine ever was of, or was told of by a file put there."""
    for path in sorted(folder.glob("*.json")):
        found = _read(path)
        if found is not None:
            yield found


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """The workers of one machine wait for the first of them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("wb")
    except OSError as error:
        raise RunError(
            f"cannot keep this machine's class in {folder}: {error.strerror}; point "
            "XDG_CACHE_HOME at a folder that can be written"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
