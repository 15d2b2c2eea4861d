"""The agent's log: lines of JSON in its folder, and for people on a terminal."""

import logging
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

_KEPT_BYTES = 16 << 20


class _Lines:
    """Appends to a file, and begins another one when it is large; the one before is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    def write(self, line: str) -> None:
        self._file.write(f"{line}\n".encode())
        if self._file.tell() > _KEPT_BYTES:
            self._path.replace(self._path.with_suffix(".log.1"))
            full, self._file = self._file, self._path.open("ab", buffering=0)
            full.close()


def set_up_logs(path: Path, *, shown: bool) -> None:
    """Log to a file; also to standard error, as text on a terminal and as JSON elsewhere."""
    lines = _Lines(path)
    as_json = structlog.processors.JSONRenderer()
    as_text = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else as_json

    def write(logger: Any, name: str, event: Any) -> str:
        # A full disk costs a line, and never the work that was to be told of.
        with suppress(OSError):
            lines.write(str(as_json(logger, name, dict(event))))
        if shown:
            with suppress(OSError):
                print(as_text(logger, name, event), file=sys.stderr, flush=True)
        raise structlog.DropEvent

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            write,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
