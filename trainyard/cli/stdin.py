"""Stdin as a file in a directory, so that it has a name."""

import sys
from typing import TYPE_CHECKING

from trainyard.content.build import build_directory, build_file
from trainyard.content.names import check_name
from trainyard.datasets.arrays import counting

if TYPE_CHECKING:
    from trainyard.content.chunking import Chunker
    from trainyard.content.content import Content, Report
    from trainyard.content.nodes import Built


def add_named(
    content: "Content", name: str, chunker: "Chunker", *, pin: bool, progress: "Report"
) -> "Built":
    check_name(name)
    with content.store.batch() as batch:
        file = build_file(sys.stdin.buffer, batch.put, chunker, counting(progress, None))
        built = build_directory([(name, file)], batch.put)
        if pin:
            batch.pin(built.cid)
    return built
