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
CREATE TABLE IF NOT EXISTS moves (
    run INTEGER NOT NULL REFERENCES runs (id),
    uri TEXT NOT NULL,          -- where the run put what it had not written
    time REAL NOT NULL,
    PRIMARY KEY (run, uri)
);
CREATE TABLE IF NOT EXISTS folders (
    run INTEGER NOT NULL REFERENCES runs (id),
    uri TEXT NOT NULL,
    made INTEGER NOT NULL,      -- by the run; else it stood there when the run came
    PRIMARY KEY (run, uri)
);
"""
# What a run has put somewhere, whatever it was.
_PUT = (
    "SELECT uri FROM writes WHERE run = ?1"
    " UNION SELECT uri FROM moves WHERE run = ?1"
    " UNION SELECT uri FROM folders WHERE run = ?1 AND made"
)


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

    def opened(self, run: int, uri: str, cid: str, size: int, *, opens: int = 1) -> None:
        """Record that a file is open, before the first of its bytes is handed out."""
        now = time.time()
        with self._transaction() as db:
            db.execute(
                "INSERT INTO reads VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]', 0) ON CONFLICT DO UPDATE"
                " SET opens = opens + excluded.opens, last_time = excluded.last_time",
                (run, uri, cid, size, self._own(db, run, uri), now, now, opens),
            )

    def read(self, run: int, uri: str, cid: str, ranges: Intervals, count: int) -> int | None:
        """Add ranges to a file that was opened; its size, or None if it is not recorded."""
        with self._transaction() as db:
            key = (run, uri, cid)
            row = db.execute(
                "SELECT size, ranges FROM reads WHERE run = ? AND uri = ? AND cid = ?", key
            ).fetchone()
            if row is None:
                return None
            size = int(row["size"])
            # INVARIANT: every range is one of the CID's bytes, also if the file has grown since.
            merged = ranges.within(0, size)
            count = max(0, count - ranges.total() + merged.total())
            for start, end in json.loads(row["ranges"]):
                merged.add(start, end)
            db.execute(
                "UPDATE reads SET ranges = ?, bytes = bytes + ?, last_time = ?"
                " WHERE run = ? AND uri = ? AND cid = ?",
                (json.dumps(list(merged)), count, time.time(), *key),
            )
            return size

    def wrote(self, run: int, uri: str) -> None:
        """Record that a file, or a whole directory, is the run's own work from now on."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO writes VALUES (?, ?, ?)", (run, uri, time.time()))

    def moved(self, run: int, source: str, target: str) -> None:
        """Record that the run moved what it had not written, and what of it was its own."""
        now = time.time()
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO moves VALUES (?, ?, ?)", (run, target, now))
            db.execute(
                "INSERT OR IGNORE INTO writes SELECT run, ?3 || substr(uri, length(?2) + 1), ?4"
                " FROM writes WHERE run = ?1 AND substr(uri, 1, length(?2) + 1) = ?2 || '/'",
                (run, source, target, now),
            )

    def folder(self, run: int, uri: str, *, made: bool) -> None:
        """Record that the run made a directory, or found one there; what was first counts."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO folders VALUES (?, ?, ?)", (run, uri, made))

    def is_own(self, run: int, uri: str) -> bool:
        """Whether a file or directory is the run's own work."""
        with self._lock:
            return self._own(self._db, run, uri)

    def put_in(self, run: int, folder: str) -> set[str]:
        """The names in a directory that are there because the run put them there."""
        with self._lock:
            rows = self._db.execute(
                f"SELECT substr(uri, length(?2) + 2) FROM ({_PUT})"  # noqa: S608
                " WHERE substr(uri, 1, length(?2) + 1) = ?2 || '/'",
                (run, folder),
            ).fetchall()
        return {name for (name,) in rows if "/" not in name}

    def moves(self, run: int) -> dict[str, float]:
        """Where the run moved something to, and when."""
        with self._lock:
            rows = self._db.execute("SELECT uri, time FROM moves WHERE run = ?", (run,)).fetchall()
        return {row["uri"]: row["time"] for row in rows}

    def found_folders(self, run: int) -> list[str]:
        """The directories that stood there when the run came."""
        query = "SELECT uri FROM folders WHERE run = ? AND NOT made ORDER BY uri"
        with self._lock:
            return [uri for (uri,) in self._db.execute(query, (run,)).fetchall()]

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
    def _own(db: sqlite3.Connection, run: int, uri: str) -> bool:
        """Whether the run has written or made `uri`, or moved its own into place above it."""
        row = db.execute(
            "SELECT 1 FROM writes WHERE run = ?1"
            " AND (uri = ?2 OR substr(?2, 1, length(uri) + 1) = uri || '/')"
            " UNION SELECT 1 FROM folders WHERE run = ?1 AND uri = ?2 AND made",
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
