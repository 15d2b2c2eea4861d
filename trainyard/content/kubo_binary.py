"""Getting a Kubo to run: one that is there, one that was built before, a new build, or a release.

Whatever is built or downloaded is kept in the user's cache, so that a machine does it once.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from trainyard.content.lifeline import dying_with_parent
from trainyard.protocol.errors import PermanentError

KUBO_VERSION = "0.43.0"
# The checksum of the module's source; its go.sum holds those of everything that it needs.
KUBO_MODULE_SUM = "h1:yIqtKSCSKZXsYHz68J6hf1/dWOe/eMyaPsTubsVUb3M="
# The first whose configuration can switch off all that would reach out by itself.
KUBO_OLDEST = (0, 38, 0)

_MODULE = "github.com/ipfs/kubo"
_RELEASES = "https://dist.ipfs.tech/kubo"
_BUILD_TIMEOUT_S = 3600.0
_DOWNLOAD_TIMEOUT_S = 600.0
_LARGEST_RELEASE_BYTES = 256 * 1024 * 1024
_STILL_S = 20.0

Report = Callable[[str], None]


class KuboNotAvailableError(PermanentError):
    """No Kubo is here and none could be had; the message says what was tried, and what to do."""


def find_kubo() -> Path | None:
    """A Kubo that runs without building or downloading: on PATH, or in the cache."""
    on_path = shutil.which("ipfs")
    for candidate in (on_path and Path(on_path), cached_kubo()):
        if candidate and (found := _version(candidate)) and found >= KUBO_OLDEST:
            return candidate
    return None


def obtain_kubo(report: Report = lambda line: None) -> Path:
    """The path of a Kubo that runs; KuboNotAvailableError if there is no way to one.

    In this order: `ipfs` on PATH, the cache, a build with Go, the official release. `report` gets a
    line whenever something begins or goes on that takes long.
    """
    found = find_kubo()
    if found is not None:
        return found
    target = cached_kubo()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KuboNotAvailableError(
            f"cannot keep a Kubo in {target.parent}: {error.strerror}; "
            "point XDG_CACHE_HOME at a folder that can be written, or put `ipfs` on PATH"
        ) from error
    with _only_one(target.parent / "lock", report):
        # Whoever had the lock before may have built it.
        found = find_kubo()
        return found if found is not None else _make(target, report)


def cached_kubo() -> Path:
    """Where a Kubo that we built or downloaded is kept."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "trainyard" / "kubo" / f"v{KUBO_VERSION}" / "ipfs"


def _make(target: Path, report: Report) -> Path:
    failures = []
    for make in (_build, _download):
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="new-") as folder:
            made = Path(folder) / "ipfs"
            try:
                make(made, report)
                if _version(made) is None:
                    raise _WayFailedError(f"{make.__name__[1:]}: the result does not run here")
            except _WayFailedError as error:
                report(str(error))
                failures.append(str(error))
            else:
                os.replace(made, target)
                report(f"Kubo {KUBO_VERSION} is in {target}")
                return target
    raise KuboNotAvailableError(
        f"no Kubo could be had ({'; '.join(failures)}): put an `ipfs` of version "
        f"{'.'.join(map(str, KUBO_OLDEST))} or newer on PATH, or install Go, "
        "or go on with the embedded store, which needs none"
    )


class _WayFailedError(Exception):
    """One of several ways to a Kubo did not lead there."""


def _build(made: Path, report: Report) -> None:
    """Compile the pinned source. `go install` asks the proxy for a list, which not all give."""
    if shutil.which("go") is None:
        raise _WayFailedError("build: Go is not on PATH")
    report(f"Getting the source of Kubo {KUBO_VERSION} ...")
    described = _run_go(["mod", "download", "-json", f"{_MODULE}@v{KUBO_VERSION}"], report)
    try:
        module = json.loads(described)
        source, checksum = str(module["Dir"]), str(module["Sum"])
    except (ValueError, KeyError, TypeError):
        raise _WayFailedError(f"build: `go mod download` said {described[:200]!r}") from None
    if checksum != KUBO_MODULE_SUM:
        raise _WayFailedError(
            f"build: the source has the checksum {checksum}, not {KUBO_MODULE_SUM}"
        )
    report(f"Building Kubo {KUBO_VERSION} with Go, once for this machine: some minutes ...")
    _run_go(["build", "-C", source, "-trimpath", "-o", str(made), "./cmd/ipfs"], report)


def _run_go(arguments: Sequence[str], report: Report) -> str:
    """What `go` printed. It gets what processor time nobody else wants."""
    # Flags and workspaces of the user's own projects have no business in this build.
    env = {key: value for key, value in os.environ.items() if key not in ("GOFLAGS", "GO111MODULE")}
    env["GOWORK"] = "off"
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            ["go", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=env,
            start_new_session=True,
            preexec_fn=dying_with_parent(niceness=10),
        ) as go,
    ):
        try:
            output = _wait(go, report)
        except BaseException:
            _kill_group(go)
            raise
        if go.returncode:
            last = _tail(said) or f"exit code {go.returncode}"
            raise _WayFailedError(f"build: `go {arguments[0]}` failed: {last}")
    return output


def _wait(go: "subprocess.Popen[bytes]", report: Report) -> str:
    begun = time.monotonic()
    while True:
        try:
            output, _ = go.communicate(timeout=_STILL_S)
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - begun
            if passed > _BUILD_TIMEOUT_S:
                raise _WayFailedError(f"build: not done after {passed:.0f} s") from None
            report(f"... still building, {passed:.0f} s so far")
        else:
            return output.decode(errors="replace")


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)


def _tail(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:])


def _download(made: Path, report: Report) -> None:
    """Fetch the official release and compare it with the SHA-512 that stands beside it.

    Both come from the same host over TLS. So this trusts that host and its certificate; the
    checksum guards against a broken or mixed-up transfer, not against the publisher.
    """
    # Light as it is, only this way needs it.
    import urllib3

    archive = f"kubo_v{KUBO_VERSION}_{_release_platform()}.tar.gz"
    url = f"{_RELEASES}/v{KUBO_VERSION}/{archive}"
    report(f"Getting {url} ...")
    http = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=10.0, read=60.0, total=_DOWNLOAD_TIMEOUT_S),
        retries=urllib3.Retry(2, redirect=3),
    )
    try:
        checksum = http.request("GET", f"{url}.sha512")
        release = http.request("GET", url, preload_content=False)
        content = release.read(_LARGEST_RELEASE_BYTES + 1)
        release.release_conn()
    except urllib3.exceptions.HTTPError as error:
        raise _WayFailedError(f"download: {url} cannot be reached ({_cause(error)})") from error
    if checksum.status != 200 or release.status != 200:
        raise _WayFailedError(
            f"download: {url} answers {release.status}, its checksum {checksum.status}"
        )
    if len(content) > _LARGEST_RELEASE_BYTES:
        raise _WayFailedError(f"download: {url} is larger than any release")
    unpack_release(content, checksum.data, made)


def unpack_release(content: bytes, checksum: bytes, made: Path) -> None:
    """Write the program in a release to `made`, if the release has the checksum."""
    expected = checksum.split()[0].decode(errors="replace").lower() if checksum.split() else ""
    actual = hashlib.sha512(content).hexdigest()
    if actual != expected:
        raise _WayFailedError(f"download: the SHA-512 is {actual}, not {expected or 'given'}")
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as release:
            program = release.extractfile("kubo/ipfs")
            if program is None:
                raise KeyError("kubo/ipfs")
            with made.open("wb") as out:
                shutil.copyfileobj(program, out)
    except (tarfile.TarError, KeyError, OSError) as error:
        raise _WayFailedError(f"download: the release cannot be unpacked: {error}") from error
    made.chmod(0o755)


def _release_platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "riscv64": "riscv64"}
    system, processor = platform.system().lower(), machine.get(platform.machine())
    if system not in ("linux", "darwin") or processor is None:
        raise _WayFailedError(
            f"download: there is no release for {platform.system()} on {platform.machine()}"
        )
    return f"{system}-{processor}"


def _cause(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)


def _version(binary: Path) -> tuple[int, int, int] | None:
    """The version that a binary says it has, or None if it is no Kubo that runs."""
    env: Mapping[str, str] = {**os.environ, "IPFS_TELEMETRY": "off"}
    try:
        said = subprocess.run(
            [binary, "version", "--number"],
            capture_output=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            env=env,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(rb"(\d+)\.(\d+)\.(\d+)", said.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def main() -> None:
    """Print the path of a Kubo, after getting one if there is none."""
    try:
        print(obtain_kubo(lambda line: print(line, file=sys.stderr, flush=True)))
    except KuboNotAvailableError as error:
        sys.exit(str(error))


@contextlib.contextmanager
def _only_one(path: Path, report: Report) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends."""
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("Another process is getting Kubo; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
