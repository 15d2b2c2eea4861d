"""Fetching on a stranger's word: no more than somebody allows, and refused before it is fetched."""

from pathlib import Path
from typing import Self

from trainyard.content.content import Content, Report
from trainyard.content.errors import IsADirectoryContentError, LimitExceededError
from trainyard.content.keeping import KeepingContent
from trainyard.content.names import ContentPath
from trainyard.content.reading import Entry, EntryKind


class BoundedContent(Content):
    """Files up to so many bytes together, also those that an earlier try left."""

    # How to allow more, which is for those to say who made it.
    _remedy: str
    _most_bytes: int
    _taken: int

    @classmethod
    def of(cls, content: Content, most_bytes: int, remedy: str) -> Self:
        """The same store and sources. To be ended by `content`, and its threads by `fetcher`."""
        found = content.fetcher
        bounded = cls(content.store, found.sources, limits=content.limits, hedge_s=found.hedge_s)
        bounded._most_bytes, bounded._taken, bounded._remedy = most_bytes, 0, remedy
        return bounded

    def foresee(self, size: int, what: str) -> None:
        if self._taken + size > self._most_bytes:
            raise LimitExceededError(
                f"{what} has {size:,} bytes, which with the {self._taken:,} before it are over the "
                f"{self._most_bytes:,} that are allowed: {self._remedy}"
            )

    def get(self, path: ContentPath, target: Path, *, progress: Report | None = None) -> Entry:
        entry = self.stat(path)
        if entry.kind is EntryKind.DIRECTORY:
            raise IsADirectoryContentError(f"{path} is a directory, of which nobody knows the size")
        self.foresee(entry.size, str(path))
        self._taken += entry.size
        return super().get(path, target, progress=progress)


class BoundedKeepingContent(BoundedContent, KeepingContent):
    """The same, and what is fetched stays in our own store."""
