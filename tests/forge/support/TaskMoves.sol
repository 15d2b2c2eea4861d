// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ILiveness} from "../../../contracts/interfaces/ILiveness.sol";
import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {MoneyMoves} from "./MoneyMoves.sol";
import {Secrets} from "./Secrets.sol";
import {Sketches} from "./Sketches.sol";
import {vm} from "./Vm.sol";

/// @notice Moves of requesters and slots, and the ends of tasks. A move returns whether it found
/// something to do for the task.
abstract contract TaskMoves is MoneyMoves, Sketches {
    uint256 internal constant MAX_LIVE = 5;

    function _post() internal returns (bool) {
        if (live.length >= MAX_LIVE) return false;
        if (_paused) return _setPaused();
        Terms memory terms = _sketchTerms();
        address requester = _anyone();
        uint256 escrow = uint256(terms.reward) * terms.slots + uint256(terms.auditFee) * terms.audits;
        _do(requester, _once(3) ? escrow : 0, abi.encodeCall(ITasks.post, (terms)));
        _watch(market.taskCount());
        return true;
    }

    function _cancel(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Open || !_once(4)) return false;
        _do(t.requester, abi.encodeCall(ISettlement.cancel, (_id(id))));
        return true;
    }

    function _join(uint256 id, Task memory t) internal returns (bool) {
        bool vacant = t.joined != (uint256(1) << t.slots) - 1 && t.answered == 0;
        if (!vacant || t.state == TaskState.None || t.state > TaskState.Running || _now() >= t.deadline) return false;
        uint256 first = _roll(actors.length);
        for (uint256 i = 0; i < actors.length; ++i) {
            address actor = actors[(first + i) % actors.length];
            if (!_mayJoin(id, t, actor)) continue;
            _do(
                actor,
                _once(3) ? t.stake : 0,
                abi.encodeCall(ITasks.join, (_id(id), "card", _proofOf(t.allowList, actor)))
            );
            return true;
        }
        return false;
    }

    function _mayJoin(uint256 id, Task memory t, address actor) private view returns (bool) {
        if (actor == t.requester || !_isAllowed(t.allowList, actor)) return false;
        bytes32 envClass = market.worker(actor).envClass;
        if (envClass == 0 || (t.policy < Policy.Score && envClass != t.envClass)) return false;
        Account memory a = market.account(actor);
        if (a.credit < t.stake || a.settled < t.minSettled) return false;
        for (uint256 i = 0; i < t.slots; ++i) {
            if (_has(t.joined, i) && market.slot(_id(id), i).worker == actor) return false;
        }
        return true;
    }

    function _leave(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Open || t.joined == 0 || !_once(2)) return false;
        uint256 index = _among(t.joined);
        _do(_holder(id, index), abi.encodeCall(ILiveness.leave, (_id(id), index)));
        return true;
    }

    // Liveness

    function _ping(uint256 id, Task memory t) internal returns (bool) {
        uint32 silent = t.joined & ~t.answered;
        if (t.state != TaskState.Running || silent == 0 || _now() >= t.deadline) return false;
        uint256 index = _among(silent);
        Slot memory s = market.slot(_id(id), index);
        if (s.pongBy != 0 || _now() < s.quietUntil) return false;
        address by = _once(2) ? t.requester : _holder(id, _among(t.joined));
        _do(by, abi.encodeCall(ILiveness.ping, (_id(id), index)));
        return true;
    }

    function _pong(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Running || t.joined == 0) return false;
        uint256 index = _among(t.joined);
        Slot memory s = market.slot(_id(id), index);
        if (s.pongBy == 0 || _now() >= s.pongBy) return false;
        _do(s.worker, abi.encodeCall(ILiveness.pong, (_id(id), index)));
        return true;
    }

    function _evict(uint256 id, Task memory t) internal returns (bool) {
        uint32 silent = t.joined & ~t.answered;
        if (t.state != TaskState.Running || silent == 0) return false;
        uint256 index = _among(silent);
        uint256 pongBy = market.slot(_id(id), index).pongBy;
        if (pongBy == 0) return false;
        if (pongBy < t.deadline && _once(2)) _warpTo(pongBy);
        if (_now() < pongBy || _now() >= t.deadline) return false;
        _do(_anyone(), abi.encodeCall(ILiveness.evict, (_id(id), index)));
        return true;
    }

    // Claims

    function _commit(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayAnswer(t, true)) return false;
        uint256 index = _among(t.joined & ~t.answered);
        _do(_holder(id, index), abi.encodeCall(ITasks.commit, (_id(id), index, _commitment(id, t, index))));
        return true;
    }

    function _commitBySig(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayAnswer(t, true)) return false;
        uint256 index = _among(t.joined & ~t.answered);
        address holder = _holder(id, index);
        if (_isHostile(holder)) return false;
        bytes32 commitment = _commitment(id, t, index);
        uint256 deadline = _now() + 1;
        bytes memory signature = _sign(holder, keccak256(abi.encode(COMMITMENT_TYPE, id, index, commitment, deadline)));
        _do(_anyone(), abi.encodeCall(ITasks.commitBySig, (_id(id), index, commitment, deadline, signature)));
        return true;
    }

    function _reveal(uint256 id, Task memory t) internal returns (bool) {
        uint32 silent = t.answered & ~t.revealed;
        if (t.state != TaskState.Revealing || silent == 0 || _now() >= t.deadline) return false;
        uint256 index = _among(silent);
        Claim memory c = _claimOf(id, t, index);
        _do(
            _anyone(),
            abi.encodeCall(ITasks.reveal, (_id(id), index, Secrets.slotSalt(id, index), c.result, c.root))
        );
        return true;
    }

    function _submit(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayAnswer(t, false)) return false;
        uint256 index = _among(t.joined & ~t.answered);
        _kindOf[id][index] = _sketchKind(id);
        Claim memory c = _claimOf(id, t, index);
        uint16[] memory shares = Secrets.shares(id, _kindOf[id][index], t);
        _do(_holder(id, index), abi.encodeCall(ITasks.submit, (_id(id), index, c.result, c.root, shares)));
        return true;
    }

    function _submitBySig(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayAnswer(t, false)) return false;
        uint256 index = _among(t.joined & ~t.answered);
        address holder = _holder(id, index);
        if (_isHostile(holder)) return false;
        _kindOf[id][index] = _sketchKind(id);
        _relaySubmission(id, t, index, holder);
        return true;
    }

    function _relaySubmission(uint256 id, Task memory t, uint256 index, address holder) private {
        Claim memory c = _claimOf(id, t, index);
        uint16[] memory shares = Secrets.shares(id, _kindOf[id][index], t);
        uint256 deadline = _now() + 1;
        bytes32 message = keccak256(abi.encode(SUBMISSION_TYPE, id, index, c.result, c.root, c.shares, deadline));
        bytes memory signature = _sign(holder, message);
        _do(
            _anyone(),
            abi.encodeCall(ITasks.submitBySig, (_id(id), index, c.result, c.root, shares, deadline, signature))
        );
    }

    // Ends

    function _settle(uint256 id, Task memory t) internal returns (bool) {
        if (!_maySettle(id, t)) return false;
        _demand(_anyone(), abi.encodeCall(ISettlement.settle, (_id(id))), "settle");
        return true;
    }

    function _settleShares(uint256 id, Task memory t) internal returns (bool) {
        if (!t.sharesAgreed || !_isWindowOver(id, t)) return false;
        Claim memory c = _claimOf(id, t, t.lead);
        uint16[] memory shares = Secrets.shares(id, _kindOf[id][t.lead], t);
        _demand(_anyone(), abi.encodeCall(ISettlement.settleShares, (_id(id), c, shares)), "settleShares");
        return true;
    }

    function _expire(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayExpire(t)) return false;
        _demand(_anyone(), abi.encodeCall(ISettlement.expire, (_id(id))), "expire");
        return true;
    }

    function _maySettle(uint256 id, Task memory t) internal view returns (bool) {
        if (t.state == TaskState.Revealing && t.policy == Policy.Replicate) {
            return t.revealed == t.answered || _now() >= t.deadline;
        }
        return !t.sharesAgreed && _isWindowOver(id, t);
    }

    function _mayExpire(Task memory t) internal view returns (bool) {
        bool late = _now() >= t.deadline;
        if (t.state == TaskState.Running) return late || (t.answered != 0 && t.answered == t.joined);
        if (t.state == TaskState.Revealing) return late || t.revealed == t.answered;
        return late && (t.state == TaskState.Open || t.state == TaskState.Auditing || t.state == TaskState.Opening);
    }

    function _isWindowOver(uint256 id, Task memory t) private view returns (bool) {
        if (t.state != TaskState.Window) return false;
        Panel memory p = market.panel(_id(id), OWN_PANEL, 0);
        if (p.revealed != p.committed && _now() < p.revealBy) return false;
        return t.policy != Policy.Audit || _now() >= t.deadline;
    }

    function _mayAnswer(Task memory t, bool blind) private view returns (bool) {
        bool isBlind = t.policy == Policy.Replicate || t.policy == Policy.Contest;
        return t.state == TaskState.Running && isBlind == blind && t.joined & ~t.answered != 0 && _now() < t.deadline;
    }

    function _commitment(uint256 id, Task memory t, uint256 index) private returns (bytes32) {
        _kindOf[id][index] = _sketchKind(id);
        Claim memory c = _claimOf(id, t, index);
        return market.commitmentOf(_id(id), _holder(id, index), Secrets.slotSalt(id, index), c.result, c.root);
    }

    function _claimOf(uint256 id, Task memory t, uint256 slot) internal view returns (Claim memory) {
        return Secrets.claim(id, _kindOf[id][slot], t);
    }

    function _holder(uint256 id, uint256 index) internal view returns (address) {
        return market.slot(_id(id), index).worker;
    }

    function _has(uint32 map, uint256 index) internal pure returns (bool) {
        return map >> index & 1 != 0;
    }

    /// @dev One of the slots in the map, which must not be empty.
    function _among(uint32 map) internal returns (uint256 index) {
        index = _roll(32);
        while (!_has(map, index)) index = (index + 1) % 32;
    }

    function _sign(address holder, bytes32 message) private view returns (bytes memory) {
        bytes32 domain = keccak256(
            abi.encode(DOMAIN_TYPE, keccak256("Trainyard"), keccak256("1"), block.chainid, address(market))
        );
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(_keyOf[holder], keccak256(abi.encodePacked(hex"1901", domain, message)));
        return abi.encodePacked(r, s, v);
    }
}
