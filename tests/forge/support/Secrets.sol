// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../../../contracts/interfaces/IMarketTypes.sol";
import {Trace} from "../../../contracts/libraries/Trace.sol";

/// @notice What the parties of a task know and the chain does not: traces, claims, answers and salts.
/// @dev All of it is a function of a task and a kind, so that a campaign only has to keep kinds.
library Secrets {
    /// @notice What a slot claims.
    enum Kind {
        Honest,
        /// One segment is made up.
        Fraud,
        /// Another trace altogether.
        Dissent,
        /// Zeros instead of states, which the workers never open.
        Empty
    }

    /// @notice What a member of a panel answers.
    enum Answer {
        None,
        Truth,
        /// Whatever the workers claim.
        Claimed,
        /// The data was not served.
        Unserved,
        /// Something that nobody else says.
        Odd
    }

    uint32 internal constant TARGET = 500;

    // Traces

    /// @notice The segment that a fraudulent trace of the task makes up.
    function madeUp(uint256 id, uint256 segments) internal pure returns (uint32) {
        return uint32(uint256(keccak256(abi.encode(id, "made up"))) % segments);
    }

    function truthAfter(uint256 id, uint256 segment) internal pure returns (bytes32) {
        return keccak256(abi.encode(id, "state", segment + 1));
    }

    function stateAfter(uint256 id, Kind kind, uint256 segments, uint256 segment) internal pure returns (bytes32) {
        return states(id, kind, segments)[segment + 1];
    }

    function states(uint256 id, Kind kind, uint256 segments) internal pure returns (bytes32[] memory all) {
        all = new bytes32[](segments + 1);
        if (kind == Kind.Empty) return all;
        for (uint256 i = 0; i <= segments; ++i) {
            all[i] = keccak256(abi.encode(id, kind == Kind.Dissent ? "dissent" : "state", i));
        }
        if (kind == Kind.Fraud) all[madeUp(id, segments) + 1] = keccak256(abi.encode(id, "fraud"));
    }

    function proofAfter(uint256 id, Kind kind, uint256 segments, uint256 segment)
        internal
        pure
        returns (bytes32[] memory proof)
    {
        (, proof) = _climb(states(id, kind, segments), segment + 1);
    }

    // Claims

    function claim(uint256 id, Kind kind, IMarketTypes.Task memory t)
        internal
        pure
        returns (IMarketTypes.Claim memory)
    {
        bytes32 root;
        if (t.segments != 0) (root,) = _climb(states(id, kind, t.segments), 0);
        uint16[] memory parts = shares(id, kind, t);
        return IMarketTypes.Claim({
            result: keccak256(abi.encode(id, "result", kind)),
            root: root,
            shares: parts.length == 0 ? bytes32(0) : keccak256(abi.encodePacked(parts))
        });
    }

    /// @notice Shares that leave a rest for the requester.
    function shares(uint256 id, Kind kind, IMarketTypes.Task memory t) internal pure returns (uint16[] memory parts) {
        if (!t.sharesAgreed) return parts;
        parts = new uint16[](t.slots);
        for (uint256 i = 0; i < t.slots; ++i) {
            parts[i] = uint16(uint256(keccak256(abi.encode(id, "share", kind, i))) % (10_000 / t.slots + 1));
        }
    }

    function slotSalt(uint256 id, uint256 slot) internal pure returns (bytes32) {
        return keccak256(abi.encode(id, "slot", slot));
    }

    // Answers

    function seatSalt(uint256 id, uint32 segment, uint256 round, uint256 seat) internal pure returns (bytes32) {
        return keccak256(abi.encode(id, "seat", segment, round, seat));
    }

    function answer(uint256 id, Answer given, bytes32 truth, bytes32 claimed, bytes32 salt)
        internal
        pure
        returns (bytes32)
    {
        if (given == Answer.Truth) return truth;
        if (given == Answer.Claimed) return claimed;
        if (given == Answer.Unserved) return 0;
        return keccak256(abi.encode(id, "odd", salt));
    }

    /// @notice Scores of one evaluator: over the target, below it, or anything.
    function scores(uint256 id, Answer given, uint256 entries, bytes32 salt)
        internal
        pure
        returns (uint32[] memory row)
    {
        row = new uint32[](entries);
        for (uint256 i = 0; i < entries; ++i) {
            if (given == Answer.Truth) row[i] = uint32(TARGET + 10 * (uint256(keccak256(abi.encode(id, i))) % 5));
            else if (given == Answer.Claimed) row[i] = TARGET / 5;
            else row[i] = uint32(uint256(keccak256(abi.encode(salt, i))) % (2 * TARGET));
        }
    }

    /// @dev The root over `leaves`, and the siblings of leaf `index` from the bottom up.
    function _climb(bytes32[] memory leaves, uint256 index)
        private
        pure
        returns (bytes32 root, bytes32[] memory proof)
    {
        uint256 depth = Trace.depth(leaves.length - 1);
        bytes32[] memory level = new bytes32[](1 << depth);
        for (uint256 i = 0; i < leaves.length; ++i) level[i] = Trace.leaf(leaves[i]);
        proof = new bytes32[](depth);
        for (uint256 d = 0; d < depth; ++d) {
            proof[d] = level[index ^ 1];
            index >>= 1;
            for (uint256 i = 0; i < 1 << (depth - d - 1); ++i) level[i] = Trace.node(level[2 * i], level[2 * i + 1]);
        }
        root = level[0];
    }
}
