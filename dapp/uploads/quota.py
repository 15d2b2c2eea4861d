"""How much strangers may have this server keep, and for how long."""

import time
from collections.abc import Sequence
from contextlib import suppress

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from dapp.database.engine import Database, upsert
from dapp.database.models import ManifestRow, StoredRow, TaskRow
from dapp.errors import ApiError
from dapp.services import Services
from trainyard.content.cid import Cid
from trainyard.content.errors import NotFoundError

# Of what tasks came to: it is pinned for them, whoever gives us the same bytes once more.
_FOR_GOOD = 2**62
_AT_ONCE = 500


def require_room(services: Services, size: int) -> None:
    """507 where `size` more bytes are more than strangers may store here."""
    most = services.settings.stored_bytes
    with services.database.reading() as session:
        held = int(session.scalar(select(func.coalesce(func.sum(StoredRow.bytes), 0))) or 0)
    if held + size > most:
        raise ApiError(
            507,
            "store_full",
            f"this server keeps {most} bytes of others, and has room for {max(0, most - held)}",
            fix="try again in some days, or name a CID that another server keeps; "
            "its operator raises TRAINYARD_DAPP_STORED_BYTES",
        )


def note_stored(services: Services, cid: Cid | str, size: int) -> None:
    """It was stored just now; what was there before is as young as that again."""
    now = int(time.time())

    def note(session: Session) -> None:
        row = session.get(StoredRow, str(cid))
        if row is None or row.stored_at < _FOR_GOOD:
            values = {"cid": str(cid), "bytes": size, "stored_at": now}
            upsert(session, StoredRow, values, "cid")

    services.database.write(note)


def keep_for_good(database: Database, cid: Cid) -> None:
    """It is the server's own concern from now on, and nobody's quota."""
    values = {"cid": str(cid), "bytes": 0, "stored_at": _FOR_GOOD}
    database.write(lambda session: upsert(session, StoredRow, values, "cid"))


def sweep_stored(services: Services) -> int:
    """Let go of what no task has named for too long; how many they were."""
    before = int(time.time()) - services.settings.stored_for_s
    with services.database.reading() as session:
        found = select(StoredRow.cid).where(StoredRow.stored_at <= before)
        old = list(session.scalars(found.order_by(StoredRow.stored_at).limit(_AT_ONCE)))
        named = [cid for cid in old if _is_named(session, cid)]
    gone = [cid for cid in old if cid not in set(named)]
    for cid in gone:
        with suppress(NotFoundError):
            services.content.unpin(Cid.parse(cid))
    _settle(services, gone, named)
    if gone and services.settings.kubo is None:
        # A node of the operator's own collects when its operator says so.
        services.content.gc()
    return len(gone)


def _settle(services: Services, gone: Sequence[str], named: Sequence[str]) -> None:
    now = int(time.time())

    def settle(session: Session) -> None:
        session.execute(delete(StoredRow).where(StoredRow.cid.in_(gone)))
        for cid in named:
            # Looked at again after as long a time.
            row = session.get(StoredRow, cid)
            if row is not None:
                row.stored_at = now

    services.database.write(settle)


def _is_named(session: Session, cid: str) -> bool:
    """Whether it is the manifest of a task, or a task's manifest names it."""
    digest = f"0x{Cid.parse(cid).digest.hex()}"
    found = (
        select(TaskRow.id)
        .join(ManifestRow, ManifestRow.digest == TaskRow.manifest, isouter=True)
        .where(or_(TaskRow.manifest == digest, ManifestRow.document.contains(cid)))
    )
    return session.scalar(found.limit(1)) is not None
