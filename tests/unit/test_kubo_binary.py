"""The ways to a Kubo, with stand-ins for `ipfs` and `go`."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from trainyard.content import kubo_binary
from trainyard.content.kubo_binary import (
    KUBO_MODULE_SUM,
    KUBO_VERSION,
    KuboNotAvailableError,
    cached_kubo,
    find_kubo,
    obtain_kubo,
    unpack_release,
)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; the cache is empty, and the release is out of reach."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # The discard port, on which nobody listens.
    monkeypatch.setattr(kubo_binary, "_RELEASES", "http://127.0.0.1:9/kubo")
    return folder


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def go_that_builds(folder: Path, checksum: str = KUBO_MODULE_SUM, result: str = "") -> Path:
    """A `go` that notes how it was called and makes a Kubo in no time."""
    made = result or f"#!/bin/sh\necho {KUBO_VERSION}"
    return program(
        folder / "go",
        f"""
echo "$@" >> {folder}/calls
echo "GOFLAGS=$GOFLAGS GOWORK=$GOWORK" >> {folder}/environment
case "$1" in
mod) echo '{{"Dir": "{folder}", "Sum": "{checksum}"}}' ;;
build) while [ "$1" != -o ]; do shift; done
       printf '%s\\n' '{made}' > "$2"; /bin/chmod 755 "$2" ;;
esac""",
    )


def test_one_on_the_path_is_taken(programs: Path) -> None:
    there = program(programs / "ipfs", "echo 0.43.0")

    assert obtain_kubo() == there


@pytest.mark.parametrize("said", ["echo 0.37.9", "echo 0.9.1", "echo js-ipfs", "exit 1"])
def test_one_that_is_too_old_or_something_else_is_not_taken(programs: Path, said: str) -> None:
    program(programs / "ipfs", said)
    assert find_kubo() is None

    cached = program(cached_kubo(), f"echo {KUBO_VERSION}")
    assert obtain_kubo() == cached


def test_the_cache_is_where_the_user_wants_it(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cached_kubo() == tmp_path / "cache" / "trainyard" / "kubo" / f"v{KUBO_VERSION}" / "ipfs"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cached_kubo().is_relative_to(tmp_path / ".cache")


def test_a_build_happens_once_and_is_told(programs: Path) -> None:
    go_that_builds(programs)
    lines: list[str] = []
    made = obtain_kubo(lines.append)

    assert made == cached_kubo()
    assert made.stat().st_mode & 0o111
    assert [line.split()[0] for line in lines] == ["Getting", "Building", "Kubo"]
    calls = (programs / "calls").read_text()
    assert f"mod download -json github.com/ipfs/kubo@v{KUBO_VERSION}" in calls
    assert f"build -C {programs} -trimpath -o " in calls
    # Nothing of the way there is left.
    assert sorted(path.name for path in made.parent.iterdir()) == ["ipfs", "lock"]

    assert obtain_kubo() == made
    assert (programs / "calls").read_text() == calls


def test_the_users_own_go_settings_stay_out_of_the_build(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOWORK", "/somewhere/go.work")
    go_that_builds(programs)
    obtain_kubo()

    assert set((programs / "environment").read_text().splitlines()) == {"GOFLAGS= GOWORK=off"}


def test_two_that_need_it_build_it_once(programs: Path) -> None:
    go_that_builds(programs)
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(obtain_kubo())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == [cached_kubo()] * 4
    calls = (programs / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["mod", "build"]


def test_without_any_way_the_message_says_what_to_do(programs: Path) -> None:
    lines: list[str] = []
    with pytest.raises(KuboNotAvailableError) as caught:
        obtain_kubo(lines.append)

    said = str(caught.value)
    assert "Go is not on PATH" in said
    assert "cannot be reached" in said
    assert "put an `ipfs`" in said
    assert "embedded store" in said
    assert any("Go is not on PATH" in line for line in lines)
    assert not cached_kubo().exists()


def test_a_source_of_another_checksum_is_not_built(programs: Path) -> None:
    go_that_builds(programs, checksum="h1:another")
    with pytest.raises(KuboNotAvailableError, match="checksum h1:another, not"):
        obtain_kubo()

    assert (programs / "calls").read_text().startswith("mod download")
    assert len((programs / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'go: 403 Forbidden' >&2; exit 1", "`go mod` failed: go: 403 Forbidden"),
        ("exit 3", "`go mod` failed: exit code 3"),
        ("echo no json", "`go mod download` said 'no json"),
        ('echo "{}"', "`go mod download` said '{}"),
    ],
)
def test_a_go_that_fails_is_quoted(programs: Path, script: str, said: str) -> None:
    program(programs / "go", script)
    with pytest.raises(KuboNotAvailableError, match=said):
        obtain_kubo()


def test_a_compiler_that_fails_is_quoted(programs: Path) -> None:
    go = go_that_builds(programs)
    go.write_text(go.read_text().replace("build) ", "build) echo 'no space left' >&2; exit 1; "))
    with pytest.raises(KuboNotAvailableError, match="`go build` failed: no space left"):
        obtain_kubo()

    assert sorted(path.name for path in cached_kubo().parent.iterdir()) == ["lock"]


def test_a_result_that_does_not_run_is_not_kept(programs: Path) -> None:
    go_that_builds(programs, result="not a program")
    with pytest.raises(KuboNotAvailableError, match="does not run here"):
        obtain_kubo()

    assert not cached_kubo().exists()


def test_a_cache_that_cannot_be_written_is_named(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a file"))
    with pytest.raises(KuboNotAvailableError, match="XDG_CACHE_HOME"):
        obtain_kubo()


def release(member: str, content: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        about = tarfile.TarInfo(member)
        about.size = len(content)
        tar.addfile(about, io.BytesIO(content))
    return archive.getvalue()


def checksum_of(archive: bytes) -> bytes:
    return f"{hashlib.sha512(archive).hexdigest()}  kubo.tar.gz\n".encode()


def test_a_release_with_its_checksum_is_unpacked(tmp_path: Path) -> None:
    archive = release("kubo/ipfs", b"the program")
    unpack_release(archive, checksum_of(archive), tmp_path / "ipfs")

    assert (tmp_path / "ipfs").read_bytes() == b"the program"
    assert (tmp_path / "ipfs").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("archive", "checksum", "said"),
    [
        (release("kubo/ipfs", b"x"), checksum_of(b"another"), "SHA-512"),
        (release("kubo/ipfs", b"x"), b"", "SHA-512"),
        (release("other", b"x"), checksum_of(release("other", b"x")), "cannot be unpacked"),
        (b"no archive", checksum_of(b"no archive"), "cannot be unpacked"),
    ],
    ids=["another checksum", "no checksum", "another file", "no archive"],
)
def test_a_release_that_is_none_is_refused(
    tmp_path: Path, archive: bytes, checksum: bytes, said: str
) -> None:
    with pytest.raises(Exception, match=said):
        unpack_release(archive, checksum, tmp_path / "ipfs")


def test_tests_without_a_kubo_fail_and_say_why(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    environment = {**os.environ, "PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "pytest", "-p", "no:pytest-brownie", "-p", "no:cacheprovider"]

    ran = subprocess.run(
        [*command, "tests/integration/test_kubo_damage.py", "-k", "withheld"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == 1
    assert "there is no Kubo to test with: cannot keep a Kubo in" in ran.stdout
    assert "skipped" not in ran.stdout
