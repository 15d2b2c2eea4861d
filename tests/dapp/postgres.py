"""A PostgreSQL of our own, from Debian's packages, reached by a socket in its own folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

_DEBIAN = Path("/usr/lib/postgresql")
_FIX = "install it (Debian: apt-get install postgresql)"
# The server refuses to be root, so the tests' root becomes one of these.
_PEOPLE = ("postgres", "nobody")
_START_S = 60


def binaries() -> Path | None:
    found = sorted(_DEBIAN.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def running_postgres() -> Iterator[str]:
    """The address of a server without a database, which ends with the block."""
    bin_folder = binaries()
    if bin_folder is None:
        raise RuntimeError(f"PostgreSQL is missing: {_FIX}")
    who = _somebody()
    folder = Path(tempfile.mkdtemp(prefix="trainyard-pg-"))
    if who is not None:
        os.chown(folder, who.pw_uid, who.pw_gid)
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=_START_S,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            user=None if who is None else who.pw_uid,
            group=None if who is None else who.pw_gid,
        )

    try:
        run(str(bin_folder / "initdb"), "-D", str(data), "-U", "trainyard", "-A", "trust", "-N")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        run(str(bin_folder / "pg_ctl"), "-D", str(data), "-w", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql+psycopg://trainyard@/{{name}}?host={quote(str(folder))}"
        finally:
            run(str(bin_folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _somebody() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _PEOPLE if name in known)
