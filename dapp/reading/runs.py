"""Metrics in columns and lines in pages."""

import json
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from dapp.database.models import LineRow, PointRow
from dapp.schemas.runs import LogLine, LogPage, MetricSeries, MetricsView

_LEVELS = ("debug", "info", "warning", "error")


def metrics_of(
    session: Session, number: int, *, after: int, names: Sequence[str] | None, most: int
) -> MetricsView:
    found = select(PointRow).where(PointRow.task == number, PointRow.id > after)
    rows = list(session.scalars(found.order_by(PointRow.id)))
    series: dict[tuple[int, str, str], list[tuple[int, float, float]]] = {}
    wanted = None if names is None else set(names)
    for row in rows:
        for name, value in json.loads(row.values).items():
            if wanted is None or name in wanted:
                points = series.setdefault((row.slot, row.worker, name), [])
                points.append((row.step, row.time, value))
    is_thinned = any(len(points) > most for points in series.values())
    return MetricsView(
        series=[
            _series(slot, worker, name, _thin(points, most))
            for (slot, worker, name), points in sorted(series.items())
        ],
        last=rows[-1].id if rows else after,
        is_thinned=is_thinned,
    )


def lines_of(
    session: Session,
    number: int,
    *,
    after: int | None,
    before: int | None,
    search: str | None,
    level: str | None,
    slot: int | None,
    limit: int,
) -> LogPage:
    found = select(LineRow).where(LineRow.task == number)
    if search and "\0" not in search:
        found = found.where(func.lower(LineRow.text).contains(search.lower(), autoescape=True))
    if level is not None:
        found = found.where(LineRow.level.in_(_LEVELS[_LEVELS.index(level) :]))
    if slot is not None:
        found = found.where(LineRow.slot == slot)
    if before is not None:
        found = found.where(LineRow.id < before)
    if after is not None:
        # On from there; else the tail, which is read backwards.
        found = found.where(LineRow.id > after).order_by(LineRow.id)
    else:
        found = found.order_by(LineRow.id.desc())
    rows = list(session.scalars(found.limit(limit + 1)))
    has_more, rows = len(rows) > limit, rows[:limit]
    if after is None:
        rows.reverse()
    return LogPage(
        items=[
            LogLine.model_validate(
                {
                    "id": row.id,
                    "slot": row.slot,
                    "worker": row.worker,
                    "time": row.time,
                    "level": row.level,
                    "text": row.text,
                }
            )
            for row in rows
        ],
        first=rows[0].id if rows else None,
        last=rows[-1].id if rows else None,
        has_more=has_more,
    )


def _series(
    slot: int, worker: str, name: str, points: Sequence[tuple[int, float, float]]
) -> MetricSeries:
    return MetricSeries(
        slot=slot,
        worker=worker,
        name=name,
        steps=[step for step, _, _ in points],
        times=[time for _, time, _ in points],
        values=[value for _, _, value in points],
    )


def _thin(points: list[tuple[int, float, float]], most: int) -> list[tuple[int, float, float]]:
    """Evenly fewer, with the first and the last."""
    if len(points) <= most:
        return points
    stride = (len(points) - 1) / (most - 1)
    return [points[round(index * stride)] for index in range(most)]
