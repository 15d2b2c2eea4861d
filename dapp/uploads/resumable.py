"""Uploads in pieces, that go on after a broken line: create, PATCH at an offset, HEAD."""

import hashlib
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from dapp.database.models import UploadRow
from dapp.errors import ApiError, not_found
from dapp.schemas.content import Uploaded, UploadStart, UploadState
from dapp.services import Services
from dapp.uploads.quota import note_stored, require_room
from dapp.uploads.storing import safe_names, store_file

_BUFFER_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_MOST_PER_CLIENT = 64


class Busy:
    """Which uploads somebody writes to right now."""

    def __init__(self) -> None:
        self._lock, self._names = threading.Lock(), set[str]()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        with self._lock:
            if name in self._names:
                raise ApiError(409, "busy", "another piece of this upload is being written")
            self._names.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._names.discard(name)


_BUSY = Busy()


def begin(services: Services, given: UploadStart, client: str) -> UploadState:
    settings, now = services.settings, int(time.time())
    if given.size > settings.upload_bytes:
        raise ApiError(413, "too_large", f"an upload has at most {settings.upload_bytes} bytes")
    require_room(services, given.size)
    name = safe_names(given.name)[-1]
    number = secrets.token_urlsafe(24)

    def hold(session: Session) -> None:
        pending = select(func.coalesce(func.sum(UploadRow.size), 0)).where(
            UploadRow.uploaded.is_(None)
        )
        held = int(session.scalar(pending) or 0)
        mine = session.scalar(
            select(func.count())
            .select_from(UploadRow)
            .where(UploadRow.client == client, UploadRow.uploaded.is_(None))
        )
        if held + given.size > settings.pending_upload_bytes or (mine or 0) >= _MOST_PER_CLIENT:
            raise ApiError(429, "too_many_uploads", "too many unfinished uploads", retry_after_s=60)
        session.execute(
            insert(UploadRow).values(
                id=number,
                name=name,
                size=given.size,
                sha256=given.sha256,
                client=client,
                expires_at=now + settings.upload_for_s,
            )
        )

    services.database.write(hold)
    settings.uploads.mkdir(parents=True, exist_ok=True)
    _file(services, number).touch(mode=0o600)
    return state_of(services, number)


def state_of(services: Services, number: str) -> UploadState:
    row = _row(services, number)
    uploaded = None if row.uploaded is None else Uploaded.model_validate_json(row.uploaded)
    return UploadState(
        id=row.id,
        name=row.name,
        size=row.size,
        offset=row.size if uploaded is not None else _offset(services, number),
        expires_at=row.expires_at,
        uploaded=uploaded,
    )


async def append(
    services: Services, number: str, offset: int, pieces: AsyncIterator[bytes]
) -> UploadState:
    """Write a piece; what arrives before the line breaks is kept."""
    row = await run_in_threadpool(_row, services, number)
    with _BUSY.held(number):
        there = await run_in_threadpool(_offset, services, number)
        if row.uploaded is not None or offset != there:
            raise WrongOffsetError(row.size if row.uploaded is not None else there)
        await _write(_file(services, number), offset, row.size, pieces)
        found = await run_in_threadpool(state_of, services, number)
        if found.offset == row.size:
            found = await run_in_threadpool(_finish, services, row)
    return found


def remove(services: Services, number: str) -> None:
    with _BUSY.held(number):
        _row(services, number)
        _forget(services, [number])


def sweep(services: Services) -> int:
    """Forget uploads that nobody finished in time; how many they were."""
    with services.database.reading() as session:
        found = select(UploadRow.id).where(UploadRow.expires_at <= int(time.time()))
        gone = list(session.scalars(found))
    _forget(services, gone)
    return len(gone)


class WrongOffsetError(ApiError):
    def __init__(self, offset: int) -> None:
        super().__init__(409, "wrong_offset", f"the next piece begins at {offset}")
        self.offset = offset


async def _write(path: Path, offset: int, size: int, pieces: AsyncIterator[bytes]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    at, waiting = offset, bytearray()
    try:
        async for piece in pieces:
            if at + len(waiting) + len(piece) > size:
                raise ApiError(413, "too_large", f"the upload was announced with {size} bytes")
            waiting += piece
            if len(waiting) >= _BUFFER_BYTES:
                at += await run_in_threadpool(_put, handle, bytes(waiting), at)
                waiting.clear()
    except ClientDisconnect:
        raise ApiError(400, "cut_off", "the line broke; go on from Upload-Offset") from None
    finally:
        # Also when the line broke: the next piece goes on from there.
        if waiting and at + len(waiting) <= size:
            _put(handle, bytes(waiting), at)
        os.close(handle)


def _put(handle: int, data: bytes, at: int) -> int:
    view, place = memoryview(data), at
    while view:
        count = os.pwrite(handle, view, place)
        view, place = view[count:], place + count
    return len(data)


def _finish(services: Services, row: UploadRow) -> UploadState:
    path = _file(services, row.id)
    if row.sha256 is not None and _digest(path) != row.sha256:
        _forget(services, [row.id])
        raise ApiError(
            422,
            "wrong_hash",
            "what arrived has another SHA-256 than was announced",
            fix="upload it again",
        )
    uploaded = store_file(services.content, path, row.name)
    note_stored(services, uploaded.cid, uploaded.size, client=row.client)
    with services.database.writing() as session:
        session.execute(
            update(UploadRow)
            .where(UploadRow.id == row.id)
            .values(uploaded=uploaded.model_dump_json())
        )
    path.unlink(missing_ok=True)
    return state_of(services, row.id)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _row(services: Services, number: str) -> UploadRow:
    with services.database.reading() as session:
        row = session.get(UploadRow, number)
    if row is None or row.expires_at <= time.time():
        raise not_found("there is no such upload, or not any more", "begin another one")
    return row


def _offset(services: Services, number: str) -> int:
    try:
        return _file(services, number).stat().st_size
    except FileNotFoundError:
        return 0


def _file(services: Services, number: str) -> Path:
    return services.settings.uploads / number


def _forget(services: Services, numbers: list[str]) -> None:
    for number in numbers:
        _file(services, number).unlink(missing_ok=True)
    with services.database.writing() as session:
        session.execute(delete(UploadRow).where(UploadRow.id.in_(numbers)))
