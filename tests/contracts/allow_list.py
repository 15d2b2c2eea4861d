"""Allow-lists as OpenZeppelin's standard Merkle tree of `(address)` builds them."""

from collections.abc import Sequence

from eth_abi.abi import encode
from eth_utils.crypto import keccak


class AllowList:
    """A complete binary tree in one array: the children of i are at 2i + 1 and 2i + 2."""

    def __init__(self, members: Sequence[str]) -> None:
        leaves = sorted(leaf(member) for member in members)
        # Leaves fill the end of the array from the back, as the JavaScript library has it.
        self._tree = [bytes(32)] * (len(leaves) - 1) + leaves[::-1]
        for index in reversed(range(len(leaves) - 1)):
            self._tree[index] = node(self._tree[2 * index + 1], self._tree[2 * index + 2])

    @property
    def root(self) -> bytes:
        return self._tree[0]

    def proof(self, member: str) -> list[bytes]:
        index = self._tree.index(leaf(member))
        siblings = []
        while index > 0:
            siblings.append(self._tree[index + 1 if index % 2 else index - 1])
            index = (index - 1) // 2
        return siblings


def leaf(member: str) -> bytes:
    # Hashed twice, so that no inner node can pass for a leaf.
    return keccak(keccak(encode(["address"], [member])))


def node(left: bytes, right: bytes) -> bytes:
    return keccak(min(left, right) + max(left, right))
