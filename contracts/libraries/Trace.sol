// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Leaves and proofs of a training trace
/// @notice A trace of n segments has n + 1 states. State i is leaf i of a binary Merkle tree, which
/// is filled up with zero words to the next power of two.
/// @dev A proof is tied to its position and has exactly the depth of the tree, so a root holds one
/// state per index and no inner node can pass for a leaf.
library Trace {
    bytes1 private constant LEAF = 0x00;
    bytes1 private constant NODE = 0x01;

    function leaf(bytes32 state) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(LEAF, state));
    }

    function node(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(NODE, left, right));
    }

    /// @notice Whether `state` is state `index` of the trace of `segments` segments under `root`.
    function verify(bytes32 root, uint256 segments, uint256 index, bytes32 state, bytes32[] calldata proof)
        internal
        pure
        returns (bool)
    {
        if (index > segments || proof.length != depth(segments)) return false;
        bytes32 hash = leaf(state);
        for (uint256 level = 0; level < proof.length; ++level) {
            hash = index & 1 == 0 ? node(hash, proof[level]) : node(proof[level], hash);
            index >>= 1;
        }
        return hash == root;
    }

    /// @notice Levels above the leaves of a trace of `segments` segments.
    function depth(uint256 segments) internal pure returns (uint256 levels) {
        // The last leaf has the index `segments`; its bit length is the depth.
        for (; segments != 0; segments >>= 1) ++levels;
    }
}
