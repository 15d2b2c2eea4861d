"""What the workers of a task tell while it runs, from the dapp that they tell it to.

It is their word, which nobody has verified yet, and it is there only where a page is; the result
itself never comes from here.
"""

import json
from collections.abc import Iterator
from typing import Any

import urllib3

from trainyard.sdk.epochs import Point

_TIMEOUT_S = 10.0
_MOST_POINTS = 4_000
_MOST_LINES = 1_000
_MOST_BYTES = 32 << 20


class Feed:
    """Figures and log lines of one task, those that are new since the last time."""

    def __init__(self, page: str, task: int) -> None:
        self._base = f"{page.rstrip('/')}/api/v1/tasks/{task}"
        self._http = urllib3.PoolManager(retries=False, timeout=_TIMEOUT_S, maxsize=1)
        self._last_point = self._last_line = 0

    def close(self) -> None:
        self._http.clear()

    def points(self) -> list[Point]:
        """New figures; none if the page cannot be asked, which costs nothing but the sight."""
        found = self._get(f"metrics?after={self._last_point}&points={_MOST_POINTS}")
        if found is None:
            return []
        values: dict[tuple[int, int, float], dict[str, float]] = {}
        try:
            for series in found["series"]:
                for step, at, value in zip(
                    series["steps"], series["times"], series["values"], strict=True
                ):
                    # Points that were told apart stay apart, also of one step.
                    place = (int(step), int(series["slot"]), float(at))
                    values.setdefault(place, {})[str(series["name"])] = float(value)
            self._last_point = int(found["last"])
        except (KeyError, TypeError, ValueError):
            return []
        return [Point(slot, step, one) for (step, slot, _), one in sorted(values.items())]

    def lines(self) -> Iterator[dict[str, Any]]:
        """New lines of the workers' logs, the oldest first, however many there are."""
        while page := self._next_lines():
            yield from page

    def _next_lines(self) -> list[dict[str, Any]]:
        found = self._get(f"logs?after={self._last_line}&limit={_MOST_LINES}")
        if found is None or not isinstance(found.get("items"), list):
            return []
        items = [one for one in found["items"] if isinstance(one, dict) and "id" in one]
        if items:
            self._last_line = int(items[-1]["id"])
        return items

    def _get(self, path: str) -> dict[str, Any] | None:
        try:
            answer = self._http.request(
                "GET", f"{self._base}/{path}", redirect=False, preload_content=False
            )
            try:
                if answer.status != 200:
                    return None
                found = json.loads(answer.read(_MOST_BYTES))
            finally:
                answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None
