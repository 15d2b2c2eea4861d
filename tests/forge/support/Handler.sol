// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITrainingMarket} from "../../../contracts/interfaces/ITrainingMarket.sol";
import {Cast} from "./Cast.sol";
import {Drain} from "./Drain.sol";
import {Trespasses} from "./Trespasses.sol";

/// @notice What forge calls: one function per function of the market, each with a number to choose by.
/// @dev A step looks for a task on which its act is possible. Where there is none it carries on with
/// some task instead, so that most steps do something and runs get deep.
contract Handler is Drain, Trespasses {
    /// @notice Steps that the market did not refuse.
    uint256 public steps;

    constructor(ITrainingMarket market_) Cast(market_) {
        _settleIn();
    }

    // Money and the register

    function deposit(uint256 seed) external {
        _step(seed, _deposit);
    }

    function withdraw(uint256 seed) external {
        _step(seed, _withdraw);
    }

    function burn(uint256 seed) external {
        _step(seed, _burn);
    }

    function setHabit(uint256 seed) external {
        _step(seed, _setHabit);
    }

    function register(uint256 seed) external {
        _step(seed, _register);
    }

    function setProfile(uint256 seed) external {
        _step(seed, _setProfile);
    }

    function addBond(uint256 seed) external {
        _step(seed, _addBond);
    }

    function setDuty(uint256 seed) external {
        _step(seed, _setDuty);
    }

    function retire(uint256 seed) external {
        _step(seed, _retire);
    }

    function unbond(uint256 seed) external {
        _step(seed, _unbond);
    }

    // The owner

    function setParams(uint256 seed) external {
        _step(seed, _setParams);
    }

    function setPaused(uint256 seed) external {
        _step(seed, _setPaused);
    }

    // Tasks

    function post(uint256 seed) external {
        _step(seed, _post);
    }

    function cancel(uint256 seed) external {
        _step(seed, _cancel);
    }

    function join(uint256 seed) external {
        _step(seed, _join);
    }

    function leave(uint256 seed) external {
        _step(seed, _leave);
    }

    function ping(uint256 seed) external {
        _step(seed, _ping);
    }

    function pong(uint256 seed) external {
        _step(seed, _pong);
    }

    function evict(uint256 seed) external {
        _step(seed, _evict);
    }

    function commit(uint256 seed) external {
        _step(seed, _commit);
    }

    function commitBySig(uint256 seed) external {
        _step(seed, _commitBySig);
    }

    function reveal(uint256 seed) external {
        _step(seed, _reveal);
    }

    function submit(uint256 seed) external {
        _step(seed, _submit);
    }

    function submitBySig(uint256 seed) external {
        _step(seed, _submitBySig);
    }

    function settle(uint256 seed) external {
        _step(seed, _settle);
    }

    function settleShares(uint256 seed) external {
        _step(seed, _settleShares);
    }

    function expire(uint256 seed) external {
        _step(seed, _expire);
    }

    // Panels and disputes

    function draw(uint256 seed) external {
        _step(seed, _draw);
    }

    function auditCommit(uint256 seed) external {
        _step(seed, _auditCommit);
    }

    function open(uint256 seed) external {
        _step(seed, _open);
    }

    function auditReveal(uint256 seed) external {
        _step(seed, _auditReveal);
    }

    function scoreReveal(uint256 seed) external {
        _step(seed, _scoreReveal);
    }

    function challenge(uint256 seed) external {
        _step(seed, _challenge);
    }

    function challengeUnserved(uint256 seed) external {
        _step(seed, _challengeUnserved);
    }

    function serve(uint256 seed) external {
        _step(seed, _serve);
    }

    function drawReferees(uint256 seed) external {
        _step(seed, _drawReferees);
    }

    function refereeCommit(uint256 seed) external {
        _step(seed, _refereeCommit);
    }

    function refereeReveal(uint256 seed) external {
        _step(seed, _refereeReveal);
    }

    function resolve(uint256 seed) external {
        _step(seed, _resolve);
    }

    // Time

    function passTime(uint256 seed) external {
        _step(seed, _letTimePass);
    }

    function passBlocks(uint256 seed) external {
        _step(seed, _letBlocksPass);
    }

    function _letTimePass() private returns (bool) {
        _passTime(_roll(_once(8) ? 2 days : 1 hours));
        return true;
    }

    function _letBlocksPass() private returns (bool) {
        _passBlocks(_once(8) ? 300 : 1 + _roll(4));
        return true;
    }

    // Steps

    function _step(uint256 seed, function() internal returns (bool) move) private {
        _takeClock();
        _shake(seed);
        if (!move()) _carryOn();
        _endStep();
    }

    function _step(uint256 seed, function(uint256, Task memory) internal returns (bool) move) private {
        _takeClock();
        _shake(seed);
        if (!_onAny(move)) _carryOn();
        _endStep();
    }

    function _endStep() private {
        _look();
        if (_once(4)) _onAny(_trespass);
        ++steps;
    }

    function _onAny(function(uint256, Task memory) internal returns (bool) move) private returns (bool) {
        uint256 count = live.length;
        uint256 first = count == 0 ? 0 : _roll(count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 id = live[(first + i) % count];
            if (move(id, _task(id))) return true;
        }
        return false;
    }

    /// @dev Does for some task what is next, or lets its time pass.
    function _carryOn() private {
        if (live.length == 0 || (live.length < MAX_LIVE && _once(6))) {
            _post();
            return;
        }
        (uint256 id, Task memory t) = _someTask();
        // Now and then somebody is silent; seldom where that keeps all tasks waiting or ends a dispute.
        bool waits = t.state <= TaskState.Running || t.state == TaskState.Disputed;
        bool silent = _once(waits ? 60 : 12);
        if (!silent && _moveOn(id, t)) return;
        uint256 next = _nextDeadline(id, t);
        if (next > _now()) _warpTo(next);
        else if (!_moveOn(id, t)) _passTime(1 hours);
    }

    /// @dev Preferably one in dispute: disputes are long, and time must not run out on all of them.
    function _someTask() private returns (uint256 id, Task memory t) {
        uint256 first = _roll(live.length);
        for (uint256 i = 0; i < live.length; ++i) {
            id = live[(first + i) % live.length];
            t = _task(id);
            if (t.state == TaskState.Disputed) return (id, t);
        }
        return (live[first], _task(live[first]));
    }

    function _moveOn(uint256 id, Task memory t) private returns (bool) {
        if (t.state == TaskState.Open) return _join(id, t) || _expire(id, t);
        if (t.state == TaskState.Running) return _commit(id, t) || _submit(id, t) || _expire(id, t);
        if (t.state == TaskState.Revealing) return _reveal(id, t) || _settle(id, t) || _expire(id, t);
        if (t.state == TaskState.Submitted) return _draw(id, t);
        if (t.state == TaskState.Auditing) return _auditCommit(id, t) || _open(id, t) || _expire(id, t);
        if (t.state == TaskState.Opening) return _open(id, t) || _expire(id, t);
        if (t.state == TaskState.Window) {
            if (_auditReveal(id, t) || _scoreReveal(id, t)) return true;
            if (_once(3) && (_once(3) ? _challengeUnserved(id, t) : _challenge(id, t))) return true;
            return _settle(id, t) || _settleShares(id, t);
        }
        return _auditReveal(id, t) || (_once(2) && _serve(id, t)) || _drawReferees(id, t) || _refereeCommit(id, t)
            || _refereeReveal(id, t) || _resolve(id, t);
    }
}
