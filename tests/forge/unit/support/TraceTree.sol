// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Builds the tree of a trace from the top down, by the words of its specification and not by
/// the code that verifies it.
library TraceTree {
    bytes32 private constant EMPTY = 0;

    function root(bytes32[] memory states) internal pure returns (bytes32) {
        return _root(states, 0, width(states.length));
    }

    /// @notice The siblings of leaf `index`, from the leaf up.
    function proof(bytes32[] memory states, uint256 index) internal pure returns (bytes32[] memory siblings) {
        uint256 span = width(states.length);
        uint256 level = 0;
        for (uint256 left = span; left > 1; left /= 2) ++level;
        siblings = new bytes32[](level);
        uint256 first = 0;
        while (span > 1) {
            span /= 2;
            bool right = index >= first + span;
            siblings[--level] = _root(states, right ? first : first + span, span);
            if (right) first += span;
        }
    }

    /// @notice The least power of two that holds `count` leaves.
    function width(uint256 count) internal pure returns (uint256 leaves) {
        leaves = 1;
        while (leaves < count) leaves *= 2;
    }

    function _root(bytes32[] memory states, uint256 first, uint256 span) private pure returns (bytes32) {
        if (span == 1) return first < states.length ? keccak256(bytes.concat(hex"00", states[first])) : EMPTY;
        return keccak256(
            bytes.concat(hex"01", _root(states, first, span / 2), _root(states, first + span / 2, span / 2))
        );
    }
}
