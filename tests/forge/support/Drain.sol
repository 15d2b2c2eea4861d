// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {IWorkers} from "../../../contracts/interfaces/IWorkers.sol";
import {HostileReceiver} from "../../../contracts/mocks/HostileReceiver.sol";
import {OddToken} from "../../../contracts/mocks/OddToken.sol";
import {DisputeMoves} from "./DisputeMoves.sol";

/// @notice Ends everything by time and with calls that anyone may make, and takes all money out.
abstract contract Drain is DisputeMoves {
    /// @dev More stages than a task and its disputes can have before them.
    uint256 private constant MAX_STAGES = 200;
    address private constant ELSEWHERE = address(0xE15E);

    /// @notice Leaves a market that owes nothing to anybody; notes whatever stands in the way.
    function drain() external {
        _takeClock();
        for (uint256 stage = 0; live.length != 0; ++stage) {
            if (stage == MAX_STAGES) return _note("a task or a dispute does not end");
            _endStage(live[0]);
            _look();
        }
        _lookBack();
        _emptyRegister();
        _emptyVault();
    }

    function _endStage(uint256 id) private {
        Task memory t = _task(id);
        if (_expire(id, t) || _settle(id, t) || _settleShares(id, t)) return;
        if (_draw(id, t) || _drawReferees(id, t) || _resolve(id, t)) return;
        _warpTo(_nextDeadline(id, t));
    }

    /// @dev When something of the task is due next.
    function _nextDeadline(uint256 id, Task memory t) internal view returns (uint256 next) {
        if (t.state == TaskState.Disputed) {
            for (uint256 i = 0; i < disputed[id].length; ++i) {
                Dispute memory d = market.dispute(_id(id), disputed[id][i]);
                if (_pends(d.state) && (next == 0 || d.deadline < next)) next = d.deadline;
            }
            return next;
        }
        next = t.deadline;
        if (t.state == TaskState.Window && _revealBy(id) > next) next = _revealBy(id);
    }

    function _emptyRegister() private {
        for (uint256 i = 0; i < actors.length; ++i) {
            if (market.worker(actors[i]).envClass == 0) continue;
            _demand(actors[i], abi.encodeCall(IWorkers.retire, ()), "retire");
        }
        _passTime(30 days);
        for (uint256 i = 0; i < actors.length; ++i) {
            if (market.worker(actors[i]).unbondsAt == 0) continue;
            _demand(actors[i], abi.encodeCall(IWorkers.unbond, ()), "unbond");
        }
    }

    /// @dev Who refuses money or burns gas can still have it sent elsewhere.
    function _emptyVault() private {
        if (address(token) != address(0)) token.setHabit(OddToken.Habit.None);
        for (uint256 i = 0; i < actors.length; ++i) {
            uint256 credit = market.account(actors[i]).credit;
            bool hostile = _isHostile(actors[i]);
            if (hostile) HostileReceiver(payable(actors[i])).setMood(HostileReceiver.Mood.Refuse, address(0), "");
            _demand(actors[i], abi.encodeCall(IVault.withdraw, (hostile ? ELSEWHERE : actors[i], credit)), "withdraw");
            withdrawn += credit;
        }
        withdrawn += market.account(BURN).credit;
        _demand(ELSEWHERE, abi.encodeCall(IVault.burn, ()), "burn");
    }
}
