"""Content in and out of a Kubo, and where its blocks lie."""

import io
from collections.abc import Callable
from pathlib import Path

from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import KIB
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built

StartNode = Callable[[], KuboNode]


def add(store: KuboStore, data: bytes, chunk: int = 256 * KIB) -> Built:
    return Content(store).add(io.BytesIO(data), chunker=FixedChunker(chunk))


def read(store: KuboStore, cid: Cid) -> bytes:
    return b"".join(Content(store).cat(ContentPath(cid)))


def block_file(node: KuboNode, block: bytes) -> Path:
    """Where a node keeps a block: a file that holds it and nothing else."""
    for path in (node.repo / "blocks").rglob("*.data"):
        if path.stat().st_size == len(block) and path.read_bytes() == block:
            return path
    raise LookupError("the node does not have the block")
