// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ILiveness} from "../interfaces/ILiveness.sol";
import {Ledger} from "./Ledger.sol";

/// @title Leaving, and proving to be alive
/// @dev A slot that is evicted before anyone has answered is free for a replacement. After the first
/// answer nobody replaces a lost worker; if the others' answers are all in, `expire` moves the task on.
abstract contract Liveness is Ledger, ILiveness {
    /// @inheritdoc ILiveness
    function leave(TaskId id, uint256 index) external {
        Task storage t = _in(id, TaskState.Open);
        _holder(id, t, index, msg.sender);
        uint96 stake = t.stake;
        t.joined &= ~_bit(index);
        t.locked -= stake;
        emit SlotLeft(id, msg.sender, index);
        _credit(id, msg.sender, stake);
    }

    /// @inheritdoc ILiveness
    function ping(TaskId id, uint256 index) external {
        Task storage t = _in(id, TaskState.Running);
        _before(id, t.deadline);
        if (msg.sender != t.requester && !_isMember(id, t, msg.sender)) revert MarketNotParty(id, msg.sender);
        Slot storage s = _silent(id, t, index);
        if (s.pongBy != 0) revert MarketAlreadyPinged(id, index, s.pongBy);
        if (block.timestamp < s.quietUntil) revert MarketTooEarly(id, s.quietUntil);
        s.pongBy = _after(t.answerFor);
        emit SlotPinged(id, index, msg.sender, s.pongBy);
    }

    /// @inheritdoc ILiveness
    function pong(TaskId id, uint256 index) external {
        Task storage t = _in(id, TaskState.Running);
        _holder(id, t, index, msg.sender);
        Slot storage s = _asked(id, index);
        _before(id, s.pongBy);
        s.pongBy = 0;
        s.quietUntil = _after(t.answerFor);
        emit SlotPonged(id, index, s.quietUntil);
    }

    /// @inheritdoc ILiveness
    function evict(TaskId id, uint256 index) external {
        Task storage t = _in(id, TaskState.Running);
        // Absence after the deadline is a fault of all that have no answer; evicting one excuses nobody.
        _before(id, t.deadline);
        _silent(id, t, index);
        Slot storage s = _asked(id, index);
        _from(id, s.pongBy);
        uint256 stake = t.stake;
        uint256 penalty = stake * _params[t.paramsId].faultBps / BPS;
        t.joined &= ~_bit(index);
        t.locked -= uint96(stake);
        emit SlotEvicted(id, index, s.worker, penalty);
        _record(id, s.worker, Record.Failed);
        // INVARIANT: penalty + rest == stake.
        _credit(id, BURN, penalty);
        _credit(id, s.worker, stake - penalty);
    }

    /// @dev A held slot that has not answered yet.
    function _silent(TaskId id, Task storage t, uint256 index) private view returns (Slot storage) {
        if (!_has(t.joined, index)) revert MarketNotSlotHolder(id, index, address(0));
        if (_has(t.answered, index)) revert MarketAlreadyAnswered(id, index);
        return _slots[id][index];
    }

    function _asked(TaskId id, uint256 index) private view returns (Slot storage s) {
        s = _slots[id][index];
        if (s.pongBy == 0) revert MarketNotPinged(id, index);
    }

    function _isMember(TaskId id, Task storage t, address who) private view returns (bool) {
        for (uint256 i = 0; i < t.slots; ++i) {
            if (_has(t.joined, i) && _slots[id][i].worker == who) return true;
        }
        return false;
    }
}
