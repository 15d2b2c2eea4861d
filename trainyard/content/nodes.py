"""Storing one node of a file or directory, and what its parent has to know of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, encode_node
from trainyard.content.unixfs import UnixFs

Put = Callable[[Cid, bytes], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A finished file or directory: its CID, its bytes as a user counts them, and as stored."""

    cid: Cid
    size: int
    total_bytes: int


def put_node(put: Put, links: Sequence[Link], about: UnixFs, size: int) -> Built:
    block = encode_node(links, about.encode())
    cid = Cid.of(Codec.DAG_PB, block)
    put(cid, block)
    return Built(cid, size, len(block) + sum(link.total_bytes for link in links))
