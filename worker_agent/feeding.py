"""Tells a dapp how training goes: numbers and log lines, signed by the wallet, for who watches.

Best effort, in a thread of its own: a dapp that is slow, dead or hostile costs the agent nothing,
and what could not be told is forgotten. The agent's process alone has the key.
"""

import json
import math
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
import urllib3
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount

from trainyard.protocol.commitments import Market
from trainyard.protocol.feeds import HEADER, feed_text
from worker_agent.progress import LIVE, Shelf
from worker_agent.settings import Home

_LOOK_S = 0.5
_TIMEOUT_S = 5.0
_LONGEST_WAIT_S = 30.0
_MOST_POINTS, _MOST_LINES, _LONGEST_LINE = 200, 200, 1_800
_READ_BYTES = 256 << 10
_LEVELS = ("debug", "info", "warning", "error")
# Said of every line, or already said otherwise.
_LEFT_OUT = ("timestamp", "level", "event", "task_id")


class Feeder:
    """Follows the tasks that it is told to, until it is closed."""

    def __init__(self, url: str, home: Home, account: LocalAccount, market: Market) -> None:
        self._url, self._home = url.rstrip("/"), home
        self._account, self._market = account, market
        # Without a proxy, and without following anybody elsewhere.
        self._http = urllib3.PoolManager(retries=False, timeout=_TIMEOUT_S, maxsize=2)
        self._tasks: dict[int, int] = {}
        self._feeds: dict[int, _Feed] = {}
        self._log = _Tail(home.log)
        self._sequence = 0
        self._failures = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def watch(self, tasks: Mapping[int, int]) -> None:
        """Tell of these tasks from now on, each with the slot that is held in it."""
        self._tasks = dict(tasks)

    def close(self) -> None:
        self._ended.set()
        self._thread.join(_TIMEOUT_S + 1)
        self._http.clear()

    def _run(self) -> None:
        log = structlog.get_logger()
        while not self._ended.wait(self._wait_s()):
            try:
                self._look()
            except Exception as error:
                # A supervisor: nothing that goes wrong here is the agent's business.
                self._failures += 1
                if self._failures == 1:
                    log.info("the dapp cannot be told", reason=str(error)[:200])

    def _wait_s(self) -> float:
        return float(min(_LOOK_S * 2 ** min(self._failures, 10), _LONGEST_WAIT_S))

    def _look(self) -> None:
        tasks = self._tasks
        entries = self._log.read()
        for number in list(self._feeds):
            if number not in tasks:
                del self._feeds[number]
        for number, slot in tasks.items():
            feed = self._feeds.setdefault(number, _Feed())
            feed.take_live(Shelf(self._home.task(number)).read(LIVE))
            feed.take_lines(number, entries)
            if feed.has_news:
                self._send(number, slot, feed)

    def _send(self, number: int, slot: int, feed: "_Feed") -> None:
        # Larger than any before, also than those of an earlier run of the agent.
        self._sequence = max(self._sequence + 1, int(time.time() * 1000))
        points, lines = feed.points[:_MOST_POINTS], feed.lines[:_MOST_LINES]
        body = json.dumps(
            {
                "version": 1,
                "chain_id": self._market.chain_id,
                "market": self._market.address,
                "task": number,
                "worker": self._account.address,
                "slot": slot,
                "sequence": self._sequence,
                "sent_at": int(time.time()),
                "phase": feed.phase[:40],
                "points": points,
                "lines": lines,
            }
        ).encode()
        signed = self._account.sign_message(encode_defunct(text=feed_text(body)))
        answer = self._http.request(
            "POST",
            f"{self._url}/api/v1/tasks/{number}/feed",
            body=body,
            headers={
                "Content-Type": "application/json",
                HEADER: f"0x{bytes(signed.signature).hex()}",
            },
            redirect=False,
        )
        # What is refused would be refused again; what found nobody is tried once more.
        if answer.status in (404, 429) or answer.status >= 500:
            self._failures += 1
            return
        self._failures = 0
        del feed.points[: len(points)], feed.lines[: len(lines)]


class _Feed:
    """What is still to be told of one task."""

    def __init__(self) -> None:
        self.phase = ""
        self.points: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []
        self._last: tuple[Any, ...] = ()
        self._recent: list[Any] = []

    @property
    def has_news(self) -> bool:
        return bool(self.points or self.lines)

    def take_live(self, live: Any) -> None:
        if not isinstance(live, dict):
            return
        phase = str(live.get("phase", ""))
        if phase != self.phase:
            self.phase = phase
            self._add_line(float(live.get("at", 0.0)), "info", phase)
        steps, recent = int(live.get("steps", 0)), live.get("recent", [])
        for one in recent:
            # Segments can be quicker than looks; what an earlier look has told is not told again.
            if one not in self._recent:
                self._add_point(one, steps, _finite(one["values"]))
        self._recent = recent
        values = _numbers(live)
        now = (live.get("step"), tuple(sorted(values.items())))
        if now != self._last and values:
            self._last = now
            self._add_point(live, steps, values)
        del self.points[:-_MOST_POINTS]

    def _add_point(self, found: dict[str, Any], steps: int, values: dict[str, float]) -> None:
        step, at = int(found.get("step", 0)), float(found.get("at", 0.0))
        if values:
            self.points.append({"time": at, "step": step, "steps": steps, "values": values})

    def take_lines(self, number: int, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            is_sent = str(entry.get("action", "")).startswith(f"{number}/")
            if entry.get("task_id") != number and not is_sent:
                continue
            rest = " ".join(f"{n}={v}" for n, v in entry.items() if n not in _LEFT_OUT)
            level = str(entry.get("level", "info"))
            self._add_line(
                _seconds(entry.get("timestamp")),
                level if level in _LEVELS else "info",
                f"{entry.get('event', '')} {rest}".strip(),
            )

    def _add_line(self, at: float, level: str, text: str) -> None:
        self.lines.append({"time": at, "level": level, "text": text[:_LONGEST_LINE]})
        del self.lines[:-_MOST_LINES]


def _numbers(live: dict[str, Any]) -> dict[str, float]:
    """What changes with each step, and what the test gave; only what is a number.

    Metrics are of whole segments, and told with those: at any step between they would be old.
    """
    found: dict[str, Any] = {"loss": live.get("loss")}
    found |= {f"test/{name}": value for name, value in live.get("tested", {}).items()}
    for name in ("examples_per_s", "train_s", "energy_j", "lost_s"):
        found[name] = live.get(name)
    if not found["examples_per_s"]:
        # Not measured yet, which is no pace of zero.
        del found["examples_per_s"]
    return _finite(found)


def _finite(found: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in list(found.items())[:32]
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _seconds(stamp: Any) -> float:
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return time.time()


class _Tail:
    """Lines that are added to the agent's log from now on, also when another file is begun."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at, self._inode = self._end()

    def read(self) -> list[dict[str, Any]]:
        size, inode = self._end()
        if inode != self._inode or size < self._at:
            self._at, self._inode = 0, inode
        if size <= self._at:
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read(_READ_BYTES)
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole) or len(data)
        return [entry for line in whole.splitlines() if (entry := _entry(line)) is not None]

    def _end(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_size, found.st_ino


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
