"""Sharded directories: a hash trie over the names, as IPFS nodes write them.

A shard of width 256 takes one byte of the name's hash a level. A link's name begins with its place
in two hex digits; what follows is the entry's own name, or nothing where a deeper shard stands.
"""

from collections.abc import Iterable, Sequence

import mmh3

from trainyard.content.dag import Link
from trainyard.content.errors import LimitExceededError, MalformedBlockError
from trainyard.content.nodes import Built, Put, put_node
from trainyard.content.unixfs import HAMT_MURMUR3, HAMT_WIDTH, Kind, UnixFs

_LEVELS = 8
PREFIX = 2


def name_hash(name: str) -> bytes:
    """The 8 bytes of MurmurHash3 x64 that place a name in the trie."""
    low, _ = mmh3.hash64(
        name.encode("utf-8", "surrogateescape"), seed=0, x64arch=True, signed=False
    )
    return int(low).to_bytes(8, "big")


def check_shard(about: UnixFs) -> None:
    """Refuse shards of a kind that no IPFS node writes."""
    if about.hash_type != HAMT_MURMUR3 or about.fanout != HAMT_WIDTH:
        raise MalformedBlockError(
            f"a sharded directory of hash {about.hash_type} and width {about.fanout}: "
            f"only {HAMT_MURMUR3} and {HAMT_WIDTH} are known"
        )


def find_in_shard(links: Sequence[Link], name: str, level: int) -> Link | None:
    """The link in this shard that is `name`, or leads to the shard that would have it."""
    if level >= _LEVELS:
        raise LimitExceededError(f"a sharded directory is deeper than {_LEVELS} levels")
    place = f"{name_hash(name)[level]:02X}"
    for link in links:
        if link.name == place or link.name == place + name:
            return link
    return None


def build_shard(links: Iterable[Link], put: Put, size: int, level: int = 0) -> Built:
    """Write the trie over `links` from the leaves up."""
    if level >= _LEVELS:
        raise LimitExceededError("a directory has names whose hashes are all alike")
    places: dict[int, list[Link]] = {}
    for link in links:
        places.setdefault(name_hash(link.name)[level], []).append(link)
    children: list[Link] = []
    bitmap = 0
    for place in sorted(places):
        bitmap |= 1 << place
        members = places[place]
        if len(members) == 1:
            only = members[0]
            children.append(Link(only.cid, f"{place:02X}{only.name}", only.total_bytes))
        else:
            deeper = build_shard(members, put, 0, level + 1)
            children.append(Link(deeper.cid, f"{place:02X}", deeper.total_bytes))
    data = bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "big")
    about = UnixFs(Kind.HAMT_SHARD, data, hash_type=HAMT_MURMUR3, fanout=HAMT_WIDTH)
    return put_node(put, children, about, size)
