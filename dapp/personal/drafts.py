"""Drafts of tasks: whatever the page needs to go on with."""

import json
import secrets
import time

from sqlalchemy import delete, func, select

from dapp.database.models import DraftRow
from dapp.errors import ApiError, not_found
from dapp.schemas.personal import Draft, DraftPage, DraftWrite
from dapp.services import Services


def list_drafts(services: Services, address: str) -> DraftPage:
    with services.database.reading() as session:
        found = select(DraftRow).where(DraftRow.address == address)
        rows = session.scalars(found.order_by(DraftRow.updated_at.desc(), DraftRow.id))
        return DraftPage(items=[_view(row) for row in rows])


def read_draft(services: Services, address: str, number: str) -> Draft:
    with services.database.reading() as session:
        row = session.get(DraftRow, number)
    # Whose it is not learns not even that it is there.
    if row is None or row.address != address:
        raise not_found("there is no such draft of yours")
    return _view(row)


def add_draft(services: Services, address: str, given: DraftWrite) -> Draft:
    document, now = _document(services, given), int(time.time())
    row = DraftRow(
        id=secrets.token_hex(12),
        address=address,
        title=given.title,
        document=document,
        created_at=now,
        updated_at=now,
    )
    with services.database.writing() as session:
        mine = select(func.count()).select_from(DraftRow).where(DraftRow.address == address)
        if (session.scalar(mine) or 0) >= services.settings.drafts:
            raise ApiError(
                409, "too_many", f"there are {services.settings.drafts} drafts", fix="delete some"
            )
        session.add(row)
    return _view(row)


def write_draft(services: Services, address: str, number: str, given: DraftWrite) -> Draft:
    document = _document(services, given)
    with services.database.writing() as session:
        row = session.get(DraftRow, number)
        if row is None or row.address != address:
            raise not_found("there is no such draft of yours")
        row.title, row.document, row.updated_at = given.title, document, int(time.time())
    return _view(row)


def remove_draft(services: Services, address: str, number: str) -> None:
    with services.database.writing() as session:
        gone = session.execute(
            delete(DraftRow)
            .where(DraftRow.id == number, DraftRow.address == address)
            .returning(DraftRow.id)
        ).first()
    if gone is None:
        raise not_found("there is no such draft of yours")


def _document(services: Services, given: DraftWrite) -> str:
    text = json.dumps(given.document, separators=(",", ":"), allow_nan=False)
    if len(text) > services.settings.draft_bytes:
        raise ApiError(
            413, "too_large", f"a draft has at most {services.settings.draft_bytes} bytes"
        )
    # Which PostgreSQL cannot keep in a text.
    if "\\u0000" in text or "\0" in given.title:
        raise ApiError(422, "invalid", "a draft has a zero character in it", field="body.document")
    return text


def _view(row: DraftRow) -> Draft:
    return Draft(
        id=row.id,
        title=row.title,
        document=json.loads(row.document),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
