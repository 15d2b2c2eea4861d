// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {MarketStorage} from "./MarketStorage.sol";

/// @title Reading tasks: states, deadlines, bitmaps of slots, and calling panels
abstract contract TaskBook is MarketStorage {
    using SafeCast for uint256;

    function _in(TaskId id, TaskState state) internal view returns (Task storage t) {
        t = _tasks[id];
        if (t.state != state) revert MarketUnexpectedState(id, t.state);
    }

    function _before(TaskId id, uint256 deadline) internal view {
        if (block.timestamp >= deadline) revert MarketTooLate(id, deadline);
    }

    function _from(TaskId id, uint256 opensAt) internal view {
        if (block.timestamp < opensAt) revert MarketTooEarly(id, opensAt);
    }

    function _after(uint256 duration) internal view returns (uint40) {
        // 40 bits of seconds last for 34,000 years; durations are 32 bits at most.
        unchecked {
            return uint40(block.timestamp + duration);
        }
    }

    /// @dev Reverts unless `who` holds slot `index`.
    function _holder(TaskId id, Task storage t, uint256 index, address who) internal view {
        if (!_has(t.joined, index) || _slots[id][index].worker != who) {
            revert MarketNotSlotHolder(id, index, who);
        }
    }

    function _bit(uint256 index) internal pure returns (uint32) {
        return uint32(uint256(1) << index);
    }

    /// @dev An index past the last slot is in no map: its bit is shifted out.
    function _has(uint32 map, uint256 index) internal pure returns (bool) {
        return map & _bit(index) != 0;
    }

    function _count(uint32 map) internal pure returns (uint256 bits) {
        for (; map != 0; map &= map - 1) ++bits;
    }

    function _full(uint256 slots) internal pure returns (uint32) {
        return uint32((uint256(1) << slots) - 1);
    }

    /// @dev Policies under which each slot works alone, so that nobody may see another's claim.
    function _blind(Policy policy) internal pure returns (bool) {
        return policy == Policy.Replicate || policy == Policy.Contest;
    }

    /// @dev Policies under which evaluators measure results, instead of recomputing segments.
    function _scored(Policy policy) internal pure returns (bool) {
        return policy == Policy.Score || policy == Policy.Contest;
    }

    /// @dev How many audits a trace bears. Drawn segments are never neighbours: the start of one
    /// would give away the end of the other.
    function _auditable(uint256 segments, uint256 audits) internal pure returns (uint256) {
        uint256 most = segments < 2 ? segments : segments / 2;
        return audits < most ? audits : most;
    }

    function _claimDigest(Claim memory claim) internal pure returns (bytes32) {
        return keccak256(abi.encode(claim));
    }

    function _sharesDigest(uint16[] calldata shares) internal pure returns (bytes32) {
        return shares.length == 0 ? bytes32(0) : keccak256(abi.encodePacked(shares));
    }

    function _ownPanel(TaskId id) internal view returns (PanelSeats storage) {
        return _panels[id][OWN_PANEL][0];
    }

    /// @dev Fixes the block whose hash draws a panel, and the part of the pool that it draws from.
    function _call(TaskId id, Task storage t, uint32 segment, uint256 round) internal returns (Panel storage p) {
        p = _panels[id][segment][round].panel;
        p.drawBlock = _drawBlock(t);
        p.calledAt = uint40(block.timestamp);
        p.pool = _pools[t.envClass].length.toUint32();
    }

    function _drawBlock(Task storage t) internal view returns (uint40) {
        return (block.number + _params[t.paramsId].drawDelay).toUint40();
    }
}
