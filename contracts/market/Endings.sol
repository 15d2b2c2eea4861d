// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../interfaces/ISettlement.sol";
import {Settlement} from "./Settlement.sol";

/// @title When and how a task ends
abstract contract Endings is Settlement, ISettlement {
    /// @inheritdoc ISettlement
    function cancel(TaskId id) external {
        Task storage t = _in(id, TaskState.Open);
        if (msg.sender != t.requester) revert MarketNotRequester(id, msg.sender);
        _cancel(id, t);
    }

    /// @inheritdoc ISettlement
    function settle(TaskId id) external {
        Task storage t = _tasks[id];
        if (t.state == TaskState.Revealing && t.policy == Policy.Replicate) {
            if (t.revealed != t.answered) _from(id, t.deadline);
            _endRevealing(id, t);
        } else {
            if (t.sharesAgreed) revert MarketWrongShares(id);
            _endWindow(id, t, new uint16[](0));
        }
    }

    /// @inheritdoc ISettlement
    function settleShares(TaskId id, Claim calldata claim, uint16[] calldata shares) external {
        Task storage t = _tasks[id];
        if (!t.sharesAgreed || claim.shares != _sharesDigest(shares)) revert MarketWrongShares(id);
        bytes32 digest = _claimDigest(claim);
        if (digest != _slots[id][t.lead].digest) revert MarketWrongClaim(id, digest);
        _endWindow(id, t, shares);
    }

    /// @inheritdoc ISettlement
    function expire(TaskId id) external {
        Task storage t = _tasks[id];
        TaskState state = t.state;
        if (state == TaskState.Open) {
            _from(id, t.deadline);
            _cancel(id, t);
        } else if (state == TaskState.Running) {
            if (t.answered == 0 || t.answered != t.joined) _from(id, t.deadline);
            _endTraining(id, t);
        } else if (state == TaskState.Revealing) {
            if (t.revealed != t.answered) _from(id, t.deadline);
            _endRevealing(id, t);
        } else if (state == TaskState.Auditing) {
            _from(id, t.deadline);
            _endAuditing(id, t);
        } else if (state == TaskState.Opening) {
            _from(id, t.deadline);
            // Who is caught must not get away by silence, so silence costs as much.
            _fail(id, t, Failure.Withheld, _slashPot(id, t, 0, address(0)));
        } else {
            revert MarketUnexpectedState(id, state);
        }
    }

    /// @inheritdoc ISettlement
    function task(TaskId id) external view returns (Task memory) {
        return _tasks[id];
    }

    /// @inheritdoc ISettlement
    function slot(TaskId id, uint256 index) external view returns (Slot memory) {
        return _slots[id][index];
    }

    /// @inheritdoc ISettlement
    function taskCount() external view returns (uint256) {
        return _taskCount;
    }

    /// @inheritdoc ISettlement
    function panel(TaskId id, uint32 segment, uint256 round) external view returns (Panel memory) {
        return _panels[id][segment][round].panel;
    }

    /// @inheritdoc ISettlement
    function seat(TaskId id, uint32 segment, uint256 round, uint256 index) external view returns (Seat memory) {
        return _panels[id][segment][round].seats[index];
    }

    /// @inheritdoc ISettlement
    function scores(TaskId id, uint256 index) external view returns (uint32[] memory) {
        return _scores[id][index];
    }

    /// @inheritdoc ISettlement
    function dispute(TaskId id, uint32 segment) external view returns (Dispute memory) {
        return _disputes[id][segment];
    }

    /// @inheritdoc ISettlement
    function params(uint256 paramsId) external view returns (Params memory) {
        return _params[paramsId];
    }

    /// @inheritdoc ISettlement
    function paramsCount() external view returns (uint256) {
        return _params.length;
    }

    /// @inheritdoc ISettlement
    function bondOf(TaskId id) external view returns (uint256) {
        return _bondOf(_tasks[id]);
    }

    /// @inheritdoc ISettlement
    function poolSize(bytes32 envClass) external view returns (uint256) {
        return _pools[envClass].length;
    }

    /// @inheritdoc ISettlement
    function poolMember(bytes32 envClass, uint256 index) external view returns (address) {
        return _pools[envClass][index];
    }

    /// @inheritdoc ISettlement
    function worker(address who) external view returns (Worker memory) {
        return _workers[who];
    }

    /// @inheritdoc ISettlement
    function account(address who) external view returns (Account memory) {
        return _accounts[who];
    }

    /// @dev All answers are in, or the time for them is over.
    function _endTraining(TaskId id, Task storage t) private {
        if (_blind(t.policy)) {
            if (_count(t.answered) < t.quorum) return _fail(id, t, Failure.NoQuorum, 0);
            t.state = TaskState.Revealing;
            t.deadline = _after(t.answerFor);
            emit RevealStarted(id, t.deadline);
        } else {
            (uint256 lead, uint256 votes) = _leadOf(id, t);
            if (votes < t.quorum) return _fail(id, t, Failure.NoQuorum, 0);
            t.lead = uint8(lead);
            _callPanel(id, t);
        }
    }

    function _endRevealing(TaskId id, Task storage t) private {
        (uint256 lead, uint256 votes) = _leadOf(id, t);
        if (t.policy == Policy.Contest && votes != 0) return _callPanel(id, t);
        if (votes < t.quorum) return _fail(id, t, Failure.NoQuorum, 0);
        t.lead = uint8(lead);
        _settle(id, t, new uint16[](0));
    }

    function _callPanel(TaskId id, Task storage t) private {
        Panel storage panel = _call(id, t, OWN_PANEL, 0);
        t.state = TaskState.Submitted;
        t.deadline = _after(t.auditFor);
        emit TaskSubmitted(id, t.lead, panel.drawBlock, panel.pool, t.deadline);
    }

    /// @dev All answers of the panel are in, or the time for them and for challenges is over.
    function _endWindow(TaskId id, Task storage t, uint16[] memory shares) private {
        if (t.state != TaskState.Window) revert MarketUnexpectedState(id, t.state);
        Panel storage panel = _ownPanel(id).panel;
        if (panel.revealed != panel.committed) _from(id, panel.revealBy);
        if (t.policy == Policy.Audit) {
            _from(id, t.deadline);
            return _settle(id, t, shares);
        }
        if (panel.revealed == 0) return _fail(id, t, Failure.Unaudited, 0);
        (uint256 lead, uint256 score) = _best(id, t);
        if (score < t.target) return _fail(id, t, Failure.BelowTarget, 0);
        t.lead = uint8(lead);
        _settle(id, t, shares);
    }

    /// @dev The entry with the highest median; of equals, the one with the lowest slot.
    function _best(TaskId id, Task storage t) private view returns (uint256 lead, uint256 score) {
        if (t.policy == Policy.Score) return (t.lead, _median(id, 0));
        bool found = false;
        for (uint256 i = 0; i < t.slots; ++i) {
            if (!_has(t.revealed, i)) continue;
            uint256 median = _median(id, i);
            if (found && median <= score) continue;
            (found, lead, score) = (true, i, median);
        }
    }
}
