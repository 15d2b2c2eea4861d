"""Bounds that keep hostile content from costing more than it is worth."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader accepts. The defaults hold every file that an IPFS node makes by default."""

    # No IPFS node passes larger blocks on.
    block_bytes: int = 2 * MIB
    # Of folders in each other, and of levels in each of them and in a file, counted apart. With 174
    # links a node, eight levels are more than any disk holds.
    depth: int = 32
    links_per_node: int = 16_384
    directory_entries: int = 1_000_000
    # Nodes that are no leaves, met in one walk: stops a DAG that unfolds without end.
    nodes: int = 1_000_000
    file_bytes: int = 1024 * GIB


DEFAULT_LIMITS = Limits()
