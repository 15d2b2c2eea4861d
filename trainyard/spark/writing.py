"""What executors do: write the records of one partition into content, straight from where they are.

Of a partition one record is in memory at a time, and eight bytes for each of the shard that is
being written. What goes back to the driver are the names of shards.
"""

import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets.ordered import Piece, write_piece
from trainyard.protocol.errors import PermanentError, TransientError
from trainyard.spark.errors import ExecutorError, PartitionError, RecordError
from trainyard.spark.fields import Fields, MisfitError


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """What `mapPartitionsWithIndex` takes. All of it can be pickled, and nothing of it is a key.

    Nothing is pinned: whoever joins the pieces does that, and keeps a batch open until then.
    """

    settings: ContentSettings
    fields: Fields
    # A block that the driver has put into its store: who does not find it has another store.
    probe: Cid
    shard_bytes: int

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterable[Piece]:
        encoded = self._encoded(partition, records)
        # An empty partition needs no store.
        first = next(encoded, None)
        if first is None:
            return []
        with self._explained(partition), closing(self._content()) as content:
            return self._write(content, first, encoded)

    def _encoded(self, partition: int, records: Iterable[Any]) -> Iterator[bytes]:
        schema = self.fields.schema
        for number, record in enumerate(records):
            try:
                row = self.fields.row(record)
            except MisfitError as error:
                raise RecordError(f"partition {partition}, record {number}: {error}") from None
            yield schema.encode(row, number)

    def _content(self) -> Content:
        settings = self.settings
        # Opened, it would be made, and shards would go where nobody looks for them.
        if settings.kubo is None and not settings.store.is_dir():
            raise ExecutorError(f"there is no folder {settings.store}")
        content = open_content(settings)
        if not content.store.has(self.probe):
            content.close()
            raise ExecutorError(f"its {content.store.name} is not the one of the driver")
        return content

    def _write(self, content: Content, first: bytes, encoded: Iterator[bytes]) -> list[Piece]:
        pieces: list[Piece] = []
        following: bytes | None = first
        with content.store.batch() as batch:
            while following is not None:
                piece = write_piece(following, encoded, batch.put, most_bytes=self.shard_bytes)
                # Else the batch would remember every block of the partition.
                batch.flush()
                pieces.append(piece)
                following = next(encoded, None)
        return pieces

    @contextmanager
    def _explained(self, partition: int) -> Iterator[None]:
        """Errors in one line, which is what is left of them at the driver."""
        place = f"partition {partition}, on the executor at {socket.gethostname()}"
        try:
            yield
        except RecordError:
            raise
        except TransientError as error:
            raise ExecutorError(
                f"{place}: {_line(error)}; executors write to content themselves, so all machines "
                "need one store: a Kubo node that they all reach, or a folder that they all mount"
            ) from error
        except PermanentError as error:
            raise PartitionError(f"{place}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
