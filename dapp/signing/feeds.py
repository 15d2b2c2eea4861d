"""The feed of a run: what its workers tell of it, if it is really them."""

import json
import time
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from dapp.database.models import FeedRow, LineRow, PointRow, TaskRow
from dapp.errors import ApiError, invalid, not_found
from dapp.indexer.encoding import decode_task
from dapp.live.sequence import prune, task_topic, tell
from dapp.schemas.runs import FeedAck, FeedBatch
from dapp.services import Services
from dapp.signing.recovering import signer_of
from trainyard.protocol.feeds import feed_text
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.moves import ENDED

# A worker's clock may be wrong, but not by a day: an old batch is not to be found again later.
_MOST_SKEW_S = 600
# After the end of a task its workers may still tell how it ended.
_AFTER_S = 3600
# More different ones than any run has; others are left out, so that a feed cannot grow for ever.
MOST_NAMES = 64


def take_feed(services: Services, number: int, body: bytes, signature: str) -> FeedAck:
    """Keep a batch of a worker that holds a slot of the task, once."""
    try:
        batch = _checked(services, number, body, signature)
        ack = _keep(services, batch)
    except ApiError as error:
        services.counts.feed.labels(error.code).inc()
        raise
    services.counts.feed.labels("taken").inc()
    services.changes.note()
    services.hub.wake()
    return ack


def _checked(services: Services, number: int, body: bytes, signature: str) -> FeedBatch:
    try:
        batch = FeedBatch.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise invalid(f"{where}: {first['msg']}", field=f"body.{where}") from None
    settings = services.settings
    if batch.task != number:
        raise invalid("the batch is of another task", field="body.task")
    if (batch.chain_id, batch.market) != (settings.chain_id, settings.market):
        raise ApiError(403, "other_market", "the batch is of another market or chain")
    # INVARIANT: nothing is kept that the wallet of this worker has not signed.
    if signer_of(feed_text(body), signature) != batch.worker:
        raise ApiError(
            401, "bad_signature", f"not signed by {batch.worker}", fix="sign the body as it is sent"
        )
    if abs(time.time() - batch.sent_at) > _MOST_SKEW_S:
        raise ApiError(
            403, "stale", f"sent_at is more than {_MOST_SKEW_S} s off", fix="set the clock right"
        )
    return batch


def _keep(services: Services, batch: FeedBatch) -> FeedAck:
    settings = services.settings

    def keep(session: Session) -> list[dict[str, float]]:
        row = session.get(TaskRow, batch.task)
        if row is None:
            raise not_found(f"there is no task {batch.task}")
        _require_slot(decode_task(row.ledger), batch, row.ended_at)
        known = session.get(FeedRow, (batch.task, batch.worker))
        if known is not None and batch.sequence <= known.sequence:
            raise ApiError(
                409, "replayed", f"batch {batch.sequence} is not after batch {known.sequence}"
            )
        shown = _note(session, known, batch)
        points, lines = _insert(session, batch, shown)
        _bound(session, batch, PointRow, settings.kept_points)
        _bound(session, batch, LineRow, settings.kept_lines)
        if points:
            document = {
                "task": batch.task,
                "slot": batch.slot,
                "worker": batch.worker,
                "phase": batch.phase,
                "last": points[-1]["id"],
                "points": [
                    {"step": one.step, "time": one.time, "values": values}
                    for one, values in zip(batch.points, shown, strict=True)
                    if values
                ],
            }
            tell(session, "metrics", document, [task_topic(batch.task)])
        if lines:
            tell(session, "logs", {"task": batch.task, "lines": lines}, [task_topic(batch.task)])
        prune(session, settings.kept_live, settings.kept_live_bytes)
        return shown

    shown = services.database.write(keep)
    return FeedAck(
        sequence=batch.sequence,
        points=sum(bool(values) for values in shown),
        lines=len(batch.lines),
        dropped=sum(len(one.values) for one in batch.points) - sum(map(len, shown)),
    )


def _require_slot(task: Task, batch: FeedBatch, ended_at: int | None) -> None:
    slot = task.slots[batch.slot] if batch.slot < len(task.slots) else None
    if slot is None or slot.worker != batch.worker:
        raise ApiError(
            403, "no_slot", f"{batch.worker} does not hold slot {batch.slot} of task {batch.task}"
        )
    if task.state in ENDED:
        if ended_at is None or time.time() > ended_at + _AFTER_S:
            raise ApiError(409, "over", f"task {batch.task} is over")
    elif not task.joined >> batch.slot & 1:
        raise ApiError(403, "no_slot", f"{batch.worker} has given slot {batch.slot} up")


def _insert(
    session: Session, batch: FeedBatch, shown: list[dict[str, float]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    common = {"task": batch.task, "worker": batch.worker, "slot": batch.slot}
    points, lines = [], []
    for point, kept in zip(batch.points, shown, strict=True):
        if not kept:
            continue
        values = json.dumps(kept, separators=(",", ":"))
        row = PointRow(**common, step=point.step, time=point.time, values=values)
        session.add(row)
        points.append(row)
    for line in batch.lines:
        added = LineRow(**common, time=line.time, level=line.level, text=_clean(line.text))
        session.add(added)
        lines.append(added)
    session.flush()
    return [{"id": row.id} for row in points], [
        {
            "id": row.id,
            "slot": row.slot,
            "worker": row.worker,
            "time": row.time,
            "level": row.level,
            "text": row.text,
        }
        for row in lines
    ]


def _note(session: Session, known: FeedRow | None, batch: FeedBatch) -> list[dict[str, float]]:
    """How far the feed came; answers the values of each point that are kept."""
    row = known
    if row is None:
        row = FeedRow(
            task=batch.task,
            worker=batch.worker,
            slot=batch.slot,
            sequence=0,
            phase="",
            last_seen=0,
            step=0,
            steps=0,
            values="{}",
        )
        session.add(row)
    row.slot, row.sequence, row.phase = batch.slot, batch.sequence, batch.phase
    row.last_seen = int(time.time())
    values: dict[str, float] = json.loads(row.values)
    shown = []
    for point in batch.points:
        row.step, row.steps = point.step, point.steps or row.steps
        row.first_step = point.step if row.first_step is None else min(row.first_step, point.step)
        kept = {}
        for name, value in point.values.items():
            if name in values or len(values) < MOST_NAMES:
                kept[name] = values[name] = value
        shown.append(kept)
    row.values = json.dumps(values, separators=(",", ":"))
    return shown


def _bound(
    session: Session, batch: FeedBatch, table: type[PointRow] | type[LineRow], kept: int
) -> None:
    """Points are thinned out, the older half of them; of lines the oldest go."""
    mine = (table.task == batch.task, table.worker == batch.worker)
    count = session.scalar(select(func.count()).select_from(table).where(*mine)) or 0
    if count <= kept:
        return
    ids = list(session.scalars(select(table.id).where(*mine).order_by(table.id)))
    gone = _thinned(ids, kept) if table is PointRow else ids[: len(ids) - kept * 9 // 10]
    for start in range(0, len(gone), 500):
        session.execute(delete(table).where(table.id.in_(gone[start : start + 500])))


def _thinned(ids: list[int], kept: int) -> list[int]:
    """Which of them go, so that no more than `kept` are left: the older, the more of them."""
    left = ids
    while len(left) > kept:
        half = len(left) // 2
        left = left[:half:2] + left[half:]
    staying = set(left)
    return [one for one in ids if one not in staying]


def _clean(text: str) -> str:
    """Without what no database takes, or what would confuse a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in text)
