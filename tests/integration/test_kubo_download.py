"""Getting Kubo's official release, from a host of our own in its place."""

import functools
import hashlib
import http.server
import io
import platform
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.content import kubo_binary
from trainyard.content.kubo_binary import (
    KUBO_VERSION,
    KuboNotAvailableError,
    cached_kubo,
    obtain_kubo,
)

ARCHIVE = f"kubo_v{KUBO_VERSION}_linux-amd64.tar.gz"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a release that is served, on a machine with neither Go nor Kubo."""
    folder = tmp_path / "served" / f"v{KUBO_VERSION}"
    folder.mkdir(parents=True)
    program = f"#!/bin/sh\necho {KUBO_VERSION}\n".encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        about = tarfile.TarInfo("kubo/ipfs")
        about.size = len(program)
        tar.addfile(about, io.BytesIO(program))
    (folder / ARCHIVE).write_bytes(archive.getvalue())
    checksum = hashlib.sha512(archive.getvalue()).hexdigest()
    (folder / f"{ARCHIVE}.sha512").write_text(f"{checksum}  {ARCHIVE}\n")
    handler = functools.partial(Quiet, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(kubo_binary, "_RELEASES", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(platform, "system", lambda: "Linux")
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield folder
        server.shutdown()
        thread.join()


def test_the_release_is_fetched_checked_and_kept(releases: Path) -> None:
    lines: list[str] = []
    made = obtain_kubo(lines.append)

    assert made == cached_kubo()
    assert any(ARCHIVE in line for line in lines)
    (releases / ARCHIVE).unlink()
    assert obtain_kubo() == made


def test_a_release_of_another_checksum_is_refused(releases: Path) -> None:
    with (releases / ARCHIVE).open("ab") as archive:
        archive.write(b"more")
    with pytest.raises(KuboNotAvailableError, match="SHA-512"):
        obtain_kubo()

    assert not cached_kubo().exists()


def test_a_release_that_is_absent_is_told(releases: Path) -> None:
    (releases / f"{ARCHIVE}.sha512").unlink()
    with pytest.raises(KuboNotAvailableError, match="answers 200, its checksum 404"):
        obtain_kubo()


def test_a_machine_without_a_release_is_told(
    releases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(KuboNotAvailableError, match="no release for Linux on vax"):
        obtain_kubo()
