"""Manifests that strangers give to the server."""

from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

from dapp.database.engine import Database
from dapp.database.models import LiveRow
from dapp.posting.examples import examples
from dapp.posting.manifests import ManifestShelf
from dapp.reaching import Reach
from dapp.remembering import Changes
from tests.dapp.yard import Yard
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy


def test_a_manifest_that_is_known_is_news_to_nobody(
    yard: Yard, database: Database, tmp_path: Path
) -> None:
    document = examples().items[0].manifest
    terms = replace(yard.live.terms(Policy.AUDIT, 1), manifest=Manifest.of(document).digest)
    yard.live.call("post", terms.as_tuple(), by=yard.live.requester)
    yard.indexer(database).catch_up()
    content, changes = Content(EmbeddedStore(tmp_path / "store")), Changes()
    shelf = ManifestShelf(database, content, content, Reach(content, content, 1), changes)

    def told() -> tuple[int, int]:
        with database.reading() as session:
            found = select(func.count()).select_from(LiveRow).where(LiveRow.kind == "manifest")
            return session.scalar(found) or 0, changes.number

    given = shelf.add(document)
    assert told() == (1, 1)

    assert shelf.add(document) == given
    assert told() == (1, 1)
