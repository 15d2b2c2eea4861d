"""Manifests by their digest: kept in the store, and their summaries in the database."""

import json
import queue
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from dapp.database.engine import Database, upsert
from dapp.database.models import ManifestRow, TaskRow
from dapp.live.sequence import MARKET, task_topic, tell
from dapp.posting.describing import summary_of
from dapp.reaching import Reach
from dapp.remembering import Changes
from dapp.schemas.tasks import ManifestSummary
from dapp.security.telling import told
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.manifest.errors import ManifestError

_MOST_BYTES = 1 << 20
_AGAIN_S = 30
_MOST_WAITING = 10_000


class ManifestShelf:
    """Fetches what tasks name, one after the other, in a thread of its own."""

    def __init__(
        self,
        database: Database,
        content: Content,
        stored: Content,
        reach: Reach,
        changes: Changes,
    ) -> None:
        self._database, self._content, self._changes = database, content, changes
        self._stored, self._reach = stored, reach
        self._wanted: queue.Queue[str | None] = queue.Queue(_MOST_WAITING)
        self._asked: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="manifests", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with suppress(queue.Full):
            self._wanted.put_nowait(None)
        if self._thread.is_alive():
            self._thread.join(5.0)

    def want(self, digests: Iterable[str]) -> None:
        """See to it that these are known some time soon."""
        for digest in digests:
            if digest not in self._asked:
                with suppress(queue.Full):
                    self._wanted.put_nowait(digest)
                    self._asked.add(digest)

    def add(self, document: dict[str, Any]) -> Manifest:
        """Check a manifest, and keep it where workers find it."""
        manifest = Manifest.of(document)
        cid = cid_of(manifest.digest)
        with self._content.store.batch() as batch:
            batch.put(cid, manifest.canonical)
            batch.pin(cid)
        self._keep(f"0x{manifest.digest.hex()}", manifest, summary_of(manifest))
        return manifest

    def read(self, digest: str) -> Manifest:
        """A manifest from the store; what a task names also from whoever has it."""
        with self._database.reading() as session:
            row = session.get(ManifestRow, digest)
            named = select(TaskRow.id).where(TaskRow.manifest == digest).limit(1)
            is_named = session.scalar(named) is not None
        if row is not None and row.document is not None:
            return Manifest.parse(row.document)
        # INVARIANT: nobody has us look elsewhere for what is in no task.
        if is_named:
            manifest = self._reach.get(lambda content: self._fetch(digest, content))
        else:
            manifest = self._fetch(digest, self._stored)
        self._keep(digest, manifest, summary_of(manifest))
        return manifest

    def _fetch(self, digest: str, content: Content) -> Manifest:
        block = content.fetcher.get(cid_of(bytes.fromhex(digest[2:]))).block
        if len(block) > _MOST_BYTES:
            raise ManifestError(
                "", f"it has {len(block)} bytes, and at most {_MOST_BYTES} are read"
            )
        return Manifest.parse(bytes(block))

    def _run(self) -> None:
        while True:
            try:
                digest = self._wanted.get(timeout=_AGAIN_S)
            except queue.Empty:
                with suppress(SQLAlchemyError):
                    self._try_again()
                continue
            if digest is None:
                return
            self._asked.discard(digest)
            try:
                self._look(digest)
            except SQLAlchemyError as error:
                structlog.get_logger().warning("manifest", reason=type(error).__name__)

    def _look(self, digest: str) -> None:
        with self._database.reading() as session:
            row = session.get(ManifestRow, digest)
        if row is not None and row.document is not None:
            return
        try:
            manifest = self._fetch(digest, self._content)
        except TrainyardError as error:
            reason = f"the manifest cannot be read: {told(error)}"[:300]
            self._keep(digest, None, ManifestSummary(error=reason))
            return
        self._keep(digest, manifest, summary_of(manifest))

    def _try_again(self) -> None:
        """What could not be read may be there by now, if anybody still waits for it."""
        with self._database.reading() as session:
            found = (
                select(ManifestRow.digest)
                .join(TaskRow, TaskRow.manifest == ManifestRow.digest)
                .where(ManifestRow.document.is_(None), TaskRow.ended_at.is_(None))
                .distinct()
                .limit(100)
            )
            digests = list(session.scalars(found))
        self.want(digests)

    def _keep(self, digest: str, manifest: Manifest | None, summary: ManifestSummary) -> None:
        row = {
            "digest": digest,
            "document": None if manifest is None else manifest.canonical.decode(),
            "title": summary.title,
            "summary": summary.model_dump_json(),
            "tried_at": int(time.time()),
        }

        def keep(session: Session) -> bool:
            known = session.get(ManifestRow, digest)
            if known is not None and known.document is not None:
                # A digest has one document: there is nothing new to keep, or to tell.
                return False
            upsert(session, ManifestRow, row, "digest")
            found = select(TaskRow.id).where(TaskRow.manifest == digest).limit(100)
            for number in session.scalars(found):
                topics = [MARKET, task_topic(number)]
                tell(session, "manifest", {"task": number, "digest": digest}, topics)
            return True

        if self._database.write(keep):
            self._changes.note()


def cid_of(digest: bytes) -> Cid:
    return Cid(Codec.RAW, digest)


def document_of(manifest: Manifest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(manifest.canonical)
    return found
