// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Trace} from "../libraries/Trace.sol";

/// @notice Shows the library to tests.
contract TraceProbe {
    function verify(bytes32 root, uint256 segments, uint256 index, bytes32 state, bytes32[] calldata proof)
        external
        pure
        returns (bool)
    {
        return Trace.verify(root, segments, index, state, proof);
    }

    function depth(uint256 segments) external pure returns (uint256) {
        return Trace.depth(segments);
    }
}
