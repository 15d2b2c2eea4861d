// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Stages} from "./Stages.sol";

/// @title Medians of the evaluators' scores
abstract contract Scoring is Stages {
    /// @dev The median of the revealed scores of one entry; of an even number, the lower one.
    function _median(TaskId id, uint256 entry) internal view returns (uint32) {
        (uint32[] memory given, uint256 count) = _scoresOf(id, entry);
        return given[(count - 1) / 2];
    }

    /// @dev Bitmap of the seats that are off the median of an entry while most of the panel is on it.
    function _outliers(TaskId id, Task storage task) internal view returns (uint256 wrong) {
        uint256 seats = _ownPanel(id).panel.seats;
        uint256 tolerance = task.tolerance;
        bool contest = task.policy == Policy.Contest;
        uint256 entries = contest ? task.slots : 1;
        for (uint256 entry = 0; entry < entries; ++entry) {
            // Of an entry that was not revealed there is nothing to measure.
            if (contest && !_has(task.revealed, entry)) continue;
            uint32 median = _median(id, entry);
            uint256 off = 0;
            uint256 near = 0;
            for (uint256 i = 0; i < seats; ++i) {
                if (_scores[id][i].length == 0) continue;
                uint32 score = _scores[id][i][entry];
                uint256 distance = score > median ? score - median : median - score;
                if (distance > tolerance) off |= uint256(1) << i;
                else ++near;
            }
            if (near * 2 > seats) wrong |= off;
        }
    }

    /// @dev The revealed scores of one entry, in ascending order.
    function _scoresOf(TaskId id, uint256 entry) private view returns (uint32[] memory given, uint256 count) {
        uint256 seats = _ownPanel(id).panel.seats;
        given = new uint32[](seats);
        for (uint256 i = 0; i < seats; ++i) {
            if (_scores[id][i].length == 0) continue;
            uint32 score = _scores[id][i][entry];
            uint256 rank = count++;
            for (; rank > 0 && given[rank - 1] > score; --rank) given[rank] = given[rank - 1];
            given[rank] = score;
        }
    }
}
