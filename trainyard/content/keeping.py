"""Reading what one will have to serve on: all that is fetched stays in our own store."""

from collections.abc import Sequence
from pathlib import Path

from trainyard.content.cid import Cid
from trainyard.content.content import Content, Report
from trainyard.content.fetching import Arrived, Feed, ParallelFeed
from trainyard.content.names import ContentPath
from trainyard.content.ports import ContentStore
from trainyard.content.reading import Entry, Walk


class KeepingContent(Content):
    """Files are pinned before they are written out; of directories, what was read of them stays."""

    def get(self, path: ContentPath, target: Path, *, progress: Report | None = None) -> Entry:
        # First, or what an earlier try left at `target` would not be fetched any more.
        self.pin(path, progress=progress)
        return super().get(path, target, progress=progress)

    def _walk(self) -> Walk:
        return Walk(_KeepingFeed(ParallelFeed(self._fetcher), self.store), self.limits)


class _KeepingFeed:
    def __init__(self, feed: Feed, store: ContentStore) -> None:
        self._feed, self._store = feed, store

    def want(self, cids: Sequence[Cid]) -> None:
        self._feed.want(cids)

    def take(self, cid: Cid) -> Arrived:
        arrived = self._feed.take(cid)
        if cid.inline is None and arrived.source != self._store.name:
            with self._store.batch() as batch:
                batch.put(cid, arrived.block)
        return arrived
