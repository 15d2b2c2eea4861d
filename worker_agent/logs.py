"""The agent's log: lines of JSON in its folder, and for people on a terminal."""

import logging
import sys
from pathlib import Path
from typing import Any, TextIO

import structlog

_KEPT_BYTES = 16 << 20


class _Lines:
    """Appends to a file, and begins another one when it is large; the one before is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        if self._file.tell() > _KEPT_BYTES:
            self._file.close()
            self._path.replace(self._path.with_suffix(".log.1"))
            self._file = self._path.open("a", encoding="utf-8")


def set_up_logs(path: Path, *, shown: bool) -> None:
    """Log to a file; also to standard error, as text on a terminal and as JSON elsewhere."""
    lines = _Lines(path)
    as_json = structlog.processors.JSONRenderer()
    as_text = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else as_json

    def render(logger: Any, name: str, event: Any) -> str:
        lines.write(str(as_json(logger, name, dict(event))))
        if not shown:
            raise structlog.DropEvent
        return str(as_text(logger, name, event))

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
