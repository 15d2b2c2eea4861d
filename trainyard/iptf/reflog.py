"""What each run of a program read: every CID, when, under which path, and which of its bytes."""

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainyard.content.errors import NotFoundError
from trainyard.iptf.intervals import Intervals

_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY,
    started REAL NOT NULL,
    command TEXT NOT NULL,      -- JSON list of arguments
    cwd TEXT NOT NULL,
    finished REAL,
    exit_code INTEGER,
    reproduces INTEGER REFERENCES runs (id)
);
CREATE TABLE IF NOT EXISTS reads (
    run INTEGER NOT NULL REFERENCES runs (id),
    uri TEXT NOT NULL,
    cid TEXT NOT NULL,
    size INTEGER NOT NULL,
    own INTEGER NOT NULL,       -- written by the same run before
    first_time REAL NOT NULL,
    last_time REAL NOT NULL,
    opens INTEGER NOT NULL,
    ranges TEXT NOT NULL,       -- JSON list of [start, end), merged
    bytes INTEGER NOT NULL,     -- with repetitions
    PRIMARY KEY (run, uri, cid)
);
CREATE TABLE IF NOT EXISTS writes (
    run INTEGER NOT NULL REFERENCES runs (id),
    uri TEXT NOT NULL,
    time REAL NOT NULL,
    PRIMARY KEY (run, uri)
);
"""


@dataclass(frozen=True, slots=True)
class Run:
    id: int
    started: float
    command: tuple[str, ...]
    cwd: str
    finished: float | None
    exit_code: int | None
    reproduces: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """All reads of one file by one run. `own` is what the run itself had written before."""

    run: int
    uri: str
    cid: str
    size: int
    own: bool
    first_time: float
    last_time: float
    opens: int
    ranges: tuple[tuple[int, int], ...]
    bytes: int


class Reflog:
    """The runs and reads of one store, in an SQLite file that any process may query."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last reads, never the file.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)
        self._db.commit()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def begin_run(self, command: Sequence[str], cwd: str, reproduces: int | None = None) -> int:
        with self._transaction() as db:
            cursor = db.execute(
                "INSERT INTO runs (started, command, cwd, reproduces) VALUES (?, ?, ?, ?)",
                (time.time(), json.dumps(list(command)), cwd, reproduces),
            )
            return int(cursor.lastrowid or 0)

    def begin_run_of(self, pid: int) -> int:
        """A run for a process that did not say what it is."""
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            command, cwd = "unknown", "/"
        return self.begin_run(command.rstrip("\0").split("\0"), cwd)

    def end_run(self, run: int, exit_code: int) -> None:
        with self._transaction() as db:
            db.execute(
                "UPDATE runs SET finished = ?, exit_code = ? WHERE id = ?",
                (time.time(), exit_code, run),
            )

    def opened(self, run: int, uri: str, cid: str, size: int) -> None:
        """Record that a file is open, before the first of its bytes is handed out."""
        now = time.time()
        with self._transaction() as db:
            db.execute(
                "INSERT INTO reads VALUES (?, ?, ?, ?, ?, ?, ?, 1, '[]', 0)"
                " ON CONFLICT DO UPDATE SET opens = opens + 1, last_time = excluded.last_time",
                (run, uri, cid, size, self._wrote(db, run, uri), now, now),
            )

    def read(self, run: int, uri: str, cid: str, ranges: Intervals, count: int) -> None:
        """Add ranges to a file that was opened."""
        with self._transaction() as db:
            key = (run, uri, cid)
            row = db.execute(
                "SELECT ranges FROM reads WHERE run = ? AND uri = ? AND cid = ?", key
            ).fetchone()
            if row is None:
                return
            for start, end in json.loads(row["ranges"]):
                ranges.add(start, end)
            db.execute(
                "UPDATE reads SET ranges = ?, bytes = bytes + ?, last_time = ?"
                " WHERE run = ? AND uri = ? AND cid = ?",
                (json.dumps(list(ranges)), count, time.time(), *key),
            )

    def wrote(self, run: int, uri: str) -> None:
        """Record that a file, or a whole directory, is the run's own work from now on."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO writes VALUES (?, ?, ?)", (run, uri, time.time()))

    def runs(self) -> list[Run]:
        with self._lock:
            rows = self._db.execute("SELECT * FROM runs ORDER BY id").fetchall()
        return [_run(row) for row in rows]

    def run(self, number: int) -> Run:
        with self._lock:
            row = self._db.execute("SELECT * FROM runs WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise NotFoundError(f"there is no run {number}: `iptf reflog --runs` lists them")
        return _run(row)

    def reads(self, run: int | None = None) -> list[Read]:
        query = "SELECT * FROM reads WHERE ? IN (run, 0) ORDER BY run, first_time, uri"
        with self._lock:
            rows = self._db.execute(query, (run or 0,)).fetchall()
        return [_read(row) for row in rows]

    @staticmethod
    def _wrote(db: sqlite3.Connection, run: int, uri: str) -> bool:
        """Whether the run has written `uri`, or moved a directory above it into place."""
        row = db.execute(
            "SELECT 1 FROM writes WHERE run = ?1"
            " AND (uri = ?2 OR substr(?2, 1, length(uri) + 1) = uri || '/')",
            (run, uri),
        ).fetchone()
        return row is not None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db


def _run(row: sqlite3.Row) -> Run:
    return Run(
        id=row["id"],
        started=row["started"],
        command=tuple(json.loads(row["command"])),
        cwd=row["cwd"],
        finished=row["finished"],
        exit_code=row["exit_code"],
        reproduces=row["reproduces"],
    )


def _read(row: sqlite3.Row) -> Read:
    return Read(
        run=row["run"],
        uri=row["uri"],
        cid=row["cid"],
        size=row["size"],
        own=bool(row["own"]),
        first_time=row["first_time"],
        last_time=row["last_time"],
        opens=row["opens"],
        ranges=tuple((start, end) for start, end in json.loads(row["ranges"])),
        bytes=row["bytes"],
    )
