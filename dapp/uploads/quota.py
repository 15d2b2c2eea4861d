"""How much strangers may have this server keep, and for how long."""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from dapp.database.engine import Database, upsert
from dapp.database.models import DraftRow, ManifestRow, StoredRow, TaskRow, UploadRow
from dapp.errors import ApiError
from dapp.security.clients import asking
from dapp.services import Services
from trainyard.content.cid import Cid
from trainyard.content.errors import NotFoundError

# Of what tasks came to: it is pinned for them, whoever gives us the same bytes once more.
_FOR_GOOD = 2**62
_AT_ONCE = 500


def require_room(services: Services, size: int) -> None:
    """507 where `size` more bytes are more than strangers, or this one, may store here."""
    settings, client = services.settings, asking.get()
    most, share = settings.stored_bytes, settings.stored_bytes_per_address
    with services.database.reading() as session:
        held = int(session.scalar(select(func.coalesce(func.sum(StoredRow.bytes), 0))) or 0)
        own = _held_by(session, client)
    if held + size > most:
        raise ApiError(
            507,
            "store_full",
            f"this server keeps {most} bytes of others, and has room for {max(0, most - held)}",
            fix="try again in some days, or name a CID that another server keeps; "
            "its operator raises TRAINYARD_DAPP_STORED_BYTES",
        )
    if client and own + size > share:
        raise ApiError(
            507,
            "share_full",
            f"this server keeps {share} bytes of one address, and has room for "
            f"{max(0, share - own)} of yours",
            fix="try again in some days, or name a CID that another server keeps; "
            "its operator raises TRAINYARD_DAPP_STORED_BYTES_PER_ADDRESS",
        )


def _held_by(session: Session, client: str) -> int:
    """What is kept of somebody, with what they have announced and not finished."""
    stored = select(func.coalesce(func.sum(StoredRow.bytes), 0)).where(StoredRow.client == client)
    begun = select(func.coalesce(func.sum(UploadRow.size), 0)).where(
        UploadRow.client == client, UploadRow.uploaded.is_(None)
    )
    return int(session.scalar(stored) or 0) + int(session.scalar(begun) or 0)


def note_stored(
    services: Services, cid: Cid | str, size: int, *, client: str | None = None
) -> None:
    """It was stored just now; what was there before is as young as that again."""
    now, whose = int(time.time()), asking.get() if client is None else client

    def note(session: Session) -> None:
        row = session.get(StoredRow, str(cid))
        if row is None or row.stored_at < _FOR_GOOD:
            values = {"cid": str(cid), "bytes": size, "stored_at": now, "client": whose}
            upsert(session, StoredRow, values, "cid")

    services.database.write(note)
    # INVARIANT: what has a row is pinned. A sweep may have let go of it after it was stored and
    # before there was a row; one that comes later sees the row.
    services.content.store.pin(Cid.parse(str(cid)))


def keep_for_good(database: Database, cid: Cid) -> None:
    """It is the server's own concern from now on, and nobody's quota."""
    values = {"cid": str(cid), "bytes": 0, "stored_at": _FOR_GOOD}
    database.write(lambda session: upsert(session, StoredRow, values, "cid"))


def sweep_stored(services: Services) -> int:
    """Let go of what no task has named for too long; how many they were."""
    now = int(time.time())
    before = now - services.settings.stored_for_s
    with services.database.reading() as session:
        found = select(StoredRow.cid).where(StoredRow.stored_at <= before)
        old = list(session.scalars(found.order_by(StoredRow.stored_at).limit(_AT_ONCE)))
        wanted = {cid: _wanted_at(session, cid, now) for cid in old}
    named = {cid: at for cid, at in wanted.items() if at > before}
    gone = _settle(services, old, named, before)
    for cid in gone:
        with suppress(NotFoundError):
            services.content.unpin(Cid.parse(cid))
    # Somebody may have stored it once more, before it was unpinned.
    for cid in _stored(services, gone):
        services.content.store.pin(Cid.parse(cid))
    if gone and services.settings.kubo is None:
        # A node of the operator's own collects when its operator says so.
        services.content.gc()
    return len(gone)


def _settle(
    services: Services, old: Collection[str], named: Mapping[str, int], before: int
) -> list[str]:
    """Forget what nobody names, if it is as old as it was seen to be; which of them these are."""

    def settle(session: Session) -> list[str]:
        for cid, at in named.items():
            # Looked at again when it has not been wanted for as long a time.
            mine = update(StoredRow).where(StoredRow.cid == cid, StoredRow.stored_at <= before)
            session.execute(mine.values(stored_at=at))
        rest = [cid for cid in old if cid not in named]
        gone = delete(StoredRow).where(StoredRow.cid.in_(rest), StoredRow.stored_at <= before)
        return list(session.scalars(gone.returning(StoredRow.cid)))

    return services.database.write(settle)


def _stored(services: Services, cids: Collection[str]) -> list[str]:
    with services.database.reading() as session:
        return list(session.scalars(select(StoredRow.cid).where(StoredRow.cid.in_(cids))))


def _wanted_at(session: Session, cid: str, now: int) -> int:
    """When a task needed it for the last time: as its manifest, or what that names.

    A task that is over needs nothing any more. A draft is as good as a task when it was saved.
    """
    digest = f"0x{Cid.parse(cid).digest.hex()}"
    tasks = (
        select(func.max(func.coalesce(TaskRow.ended_at, now)))
        .join(ManifestRow, ManifestRow.digest == TaskRow.manifest, isouter=True)
        .where(or_(TaskRow.manifest == digest, ManifestRow.document.contains(cid)))
    )
    drafts = select(func.max(DraftRow.updated_at)).where(DraftRow.document.contains(cid))
    found = max(session.scalar(tasks) or 0, session.scalar(drafts) or 0)
    # The chain's clock may be ahead of ours.
    return min(found, now)
