// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {ILiveness} from "../../../contracts/interfaces/ILiveness.sol";
import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {IWorkers} from "../../../contracts/interfaces/IWorkers.sol";
import {DisputeMoves} from "./DisputeMoves.sol";

/// @notice Calls that nobody may make, or not now, or not this one: each must be refused.
abstract contract Trespasses is DisputeMoves {
    function _trespass(uint256 id, Task memory t) internal returns (bool) {
        address actor = _anyone();
        _trespassOnTime(id, t, actor);
        uint256 choice = _roll(4);
        if (choice == 0) _trespassOnMoney(actor);
        else if (choice == 1) _trespassOnSlots(id, t, actor);
        else if (choice == 2) _trespassOnPanel(id, t, actor);
        else _trespassOnDisputes(id, t, actor);
        return true;
    }

    function _trespassOnMoney(address actor) private {
        uint256 credit = market.account(actor).credit;
        _forbid(actor, abi.encodeCall(IVault.withdraw, (actor, credit + 1)), "overdrawing");
        _forbid(actor, abi.encodeCall(ITasks.setPaused, (!_paused)), "another's pause");
        Worker memory w = market.worker(actor);
        if (w.unbondsAt == 0 || w.bondLocked != 0 || _now() < w.unbondsAt) {
            _forbid(actor, abi.encodeCall(IWorkers.unbond, ()), "unbonding early");
        }
    }

    function _trespassOnSlots(uint256 id, Task memory t, address actor) private {
        uint256 index = _roll(t.slots + 1);
        if (actor != t.requester) _forbid(actor, abi.encodeCall(ISettlement.cancel, (_id(id))), "another's cancelling");
        _forbid(t.requester, abi.encodeCall(ITasks.join, (_id(id), "", new bytes32[](0))), "joining its own task");
        if (_has(t.joined, index) && _holder(id, index) == actor) return;
        _forbid(actor, abi.encodeCall(ILiveness.leave, (_id(id), index)), "another's leaving");
        _forbid(actor, abi.encodeCall(ILiveness.pong, (_id(id), index)), "another's pong");
        _forbid(actor, abi.encodeCall(ITasks.commit, (_id(id), index, "commitment")), "another's commitment");
        _forbid(
            actor,
            abi.encodeCall(ITasks.submit, (_id(id), index, "result", "root", new uint16[](0))),
            "another's submission"
        );
    }

    function _trespassOnTime(uint256 id, Task memory t, address actor) private {
        if (!_mayExpire(t)) _forbid(actor, abi.encodeCall(ISettlement.expire, (_id(id))), "expiring early");
        if (!_maySettle(id, t)) _forbid(actor, abi.encodeCall(ISettlement.settle, (_id(id))), "settling early");
        if (t.state != TaskState.Submitted) _forbid(actor, abi.encodeCall(IDisputes.draw, (_id(id))), "a second draw");
        uint256 index = _roll(t.slots);
        uint256 pongBy = market.slot(_id(id), index).pongBy;
        bool due = pongBy != 0 && _now() >= pongBy && _now() < t.deadline;
        if (!due || !_has(t.joined & ~t.answered, index)) {
            _forbid(actor, abi.encodeCall(ILiveness.evict, (_id(id), index)), "evicting without cause");
        }
    }

    function _trespassOnPanel(uint256 id, Task memory t, address actor) private {
        uint256 index = _roll(5);
        if (_member(id, OWN_PANEL, 0, index) != actor) {
            _forbid(actor, abi.encodeCall(IDisputes.auditCommit, (_id(id), index, "")), "another's answer");
        }
        _forbid(actor, abi.encodeCall(IDisputes.auditReveal, (_id(id), index, "", "guess")), "a guessed answer");
        _forbid(
            actor,
            abi.encodeCall(IDisputes.open, (_id(id), _claimOf(id, t, t.lead), new bytes32[](0), new bytes32[][](0))),
            "opening nothing"
        );
    }

    function _trespassOnDisputes(uint256 id, Task memory t, address actor) private {
        uint32 segment = t.segments == 0 ? 0 : uint32(_roll(t.segments));
        Dispute memory d = market.dispute(_id(id), segment);
        if (!_isDue(id, t, segment, d)) {
            _forbid(actor, abi.encodeCall(IDisputes.resolve, (_id(id), segment)), "resolving early");
        }
        Claim memory claim = _claimOf(id, t, t.lead);
        _forbid(
            actor,
            abi.encodeCall(IDisputes.challenge, (_id(id), segment, claim, "no state", new bytes32[](0))),
            "a challenge without proof"
        );
        _forbid(
            actor,
            abi.encodeCall(IDisputes.serve, (_id(id), segment, claim, "no state", new bytes32[](0))),
            "serving something else"
        );
        if (_member(id, segment, d.round, 0) != actor) {
            _forbid(actor, abi.encodeCall(IDisputes.refereeCommit, (_id(id), segment, 0, "")), "another's vote");
        }
    }
}
