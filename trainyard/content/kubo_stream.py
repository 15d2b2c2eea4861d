"""A file's blocks out of its bytes: a node's `cat`, cut as the file's own nodes say.

A leaf's block is the bytes of the file at its place, so nothing but the inner nodes, one for 174
leaves, has to be asked for as blocks. If the node cuts corners the hashes of the leaves tell.
"""

import io
from collections.abc import Callable, Iterator, Sequence

import urllib3

from trainyard.content.car import Readable
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.errors import MalformedBlockError, SourceError
from trainyard.content.limits import MIB, Limits
from trainyard.content.unixfs import Kind, decode_unixfs


class Buffered:
    """An answer that is read in small and in large pieces."""

    def __init__(self, answer: urllib3.BaseHTTPResponse) -> None:
        self._reader = io.BufferedReader(answer, MIB)

    def read(self, size: int, /) -> bytes:
        return self._reader.read(size)


def has_raw_leaves(root: Cid, block: bytes) -> bool:
    """Whether `block` is the top of a file in several blocks whose leaves are the bare bytes.

    Under a CID of version 0 they are wrapped, as far as one can tell without looking.
    """
    if root.version == 0:
        return False
    try:
        node = decode_node(block)
        kind = decode_unixfs(node.data).kind
    except MalformedBlockError:
        return False
    return kind is Kind.FILE and bool(node.links)


def stream_file(
    source: str,
    root: Cid,
    block: bytes,
    fetch: Callable[[Cid], bytes],
    content: Readable,
    limits: Limits,
) -> Iterator[tuple[Cid, bytes]]:
    """The blocks under `root`, depth first, each once; none of it is verified."""
    seen = {root.digest}
    yield root, block
    stack = [iter(_children(source, root, block))]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            continue
        cid, size = child
        if not size:  # no reader looks into it, and a tree of it could be without end
            continue
        if size > limits.block_bytes and cid.codec is Codec.RAW:
            raise SourceError(source, f"{root} has a leaf of {size} bytes")
        if cid.codec is Codec.RAW:
            leaf = _take(source, root, content, size)
            if cid.digest not in seen:
                seen.add(cid.digest)
                yield cid, leaf
            continue
        node = fetch(cid)
        if cid.digest not in seen:
            seen.add(cid.digest)
            yield cid, node
        if len(stack) >= limits.depth:
            raise SourceError(source, f"{root} is deeper than {limits.depth} levels")
        children = _children(source, cid, node)
        if not children:
            # A wrapped leaf carries its bytes itself, and `cat` sends them too.
            _take(source, root, content, min(size, limits.block_bytes))
        stack.append(iter(children))


def _children(source: str, cid: Cid, block: bytes) -> Sequence[tuple[Cid, int]]:
    try:
        node = decode_node(block)
        sizes = decode_unixfs(node.data).block_sizes
    except MalformedBlockError as error:
        raise SourceError(source, f"{cid}: {error}") from error
    if len(sizes) != len(node.links):
        raise SourceError(source, f"{cid} has {len(node.links)} links and {len(sizes)} sizes")
    return [(link.cid, size) for link, size in zip(node.links, sizes, strict=True)]


def _take(source: str, root: Cid, content: Readable, size: int) -> bytes:
    leaf = content.read(size)
    if len(leaf) != size:
        raise SourceError(source, f"the bytes of {root} end {size - len(leaf)} too early")
    return leaf
