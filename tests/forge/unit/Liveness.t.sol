// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ILiveness} from "../../../contracts/interfaces/ILiveness.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Leaving, pings, and evictions.
contract LivenessTest is TaskDriver {
    /// @dev Rule T2: who leaves an open task gets its stake back, and its slot is free again.
    function test_leave() external {
        TaskId id = _post(_terms(Policy.Replicate, 2));
        _join(id, _worker(0));

        vm.prank(_worker(0));
        market.leave(id, 0);

        _assertCredit(market, _worker(0), CREDIT);
        vm.assertEq(market.task(id).joined, 0);
        vm.assertEq(market.task(id).locked, 2 * REWARD);
        _join(id, _worker(1));
        vm.assertEq(market.slot(id, 0).worker, _worker(1));
    }

    /// @dev Rule T2: nobody leaves for another, or once the task runs.
    function test_wrongLeavesAreRefused() external {
        TaskId id = _post(_terms(Policy.Replicate, 2));
        _join(id, _worker(0));
        bytes memory leave = abi.encodeCall(market.leave, (id, 0));

        _refused(STRANGER, leave, abi.encodeWithSelector(MarketNotSlotHolder.selector, id, 0, STRANGER));
        _join(id, _worker(1));
        _refused(_worker(0), leave, _unexpectedState(id, TaskState.Running));
    }

    /// @dev Rule T4: who answers a ping is left in peace for as long as it had to answer.
    function test_pongBuysPeace() external {
        TaskId id = _running(_terms(Policy.Audit));
        bytes memory ping = abi.encodeCall(market.ping, (id, 0));
        _ping(id, 0, REQUESTER);
        uint256 pongBy = _now() + 10 minutes;
        vm.assertEq(market.slot(id, 0).pongBy, pongBy);
        vm.warp(pongBy - 1);

        vm.prank(_worker(0));
        market.pong(id, 0);

        uint256 quietUntil = pongBy - 1 + 10 minutes;
        vm.assertEq(market.slot(id, 0).pongBy, 0);
        vm.assertEq(market.slot(id, 0).quietUntil, quietUntil);
        vm.warp(quietUntil - 1);
        _refused(REQUESTER, ping, _tooEarly(id, quietUntil));
        vm.warp(quietUntil);
        _ping(id, 0, REQUESTER);
        vm.assertEq(market.slot(id, 0).pongBy, quietUntil + 10 minutes);
    }

    /// @dev Rule T4: only parties ask, once at a time, and only silent slots.
    function test_wrongPingsAreRefused() external {
        TaskId id = _running(_terms(Policy.Audit, 3));
        bytes memory ping = abi.encodeCall(market.ping, (id, 0));

        _refused(STRANGER, ping, abi.encodeWithSelector(ILiveness.MarketNotParty.selector, id, STRANGER));
        _ping(id, 0, _worker(2));
        _refused(
            _worker(1),
            ping,
            abi.encodeWithSelector(ILiveness.MarketAlreadyPinged.selector, id, 0, _now() + 10 minutes)
        );
        _refused(
            REQUESTER,
            abi.encodeCall(market.ping, (id, 3)),
            abi.encodeWithSelector(MarketNotSlotHolder.selector, id, 3, address(0))
        );
        _submit(id, 1, _claim());
        _refused(
            REQUESTER,
            abi.encodeCall(market.ping, (id, 1)),
            abi.encodeWithSelector(MarketAlreadyAnswered.selector, id, 1)
        );
        uint256 trainBy = market.task(id).deadline;
        vm.warp(trainBy);
        _refused(REQUESTER, abi.encodeCall(market.ping, (id, 2)), _tooLate(id, trainBy));
    }

    /// @dev Rules T4, C1: a pong must be asked for, come from the holder, and in time.
    function test_wrongPongsAreRefused() external {
        TaskId id = _running(_terms(Policy.Audit));
        bytes memory pong = abi.encodeCall(market.pong, (id, 0));

        _refused(_worker(0), pong, abi.encodeWithSelector(ILiveness.MarketNotPinged.selector, id, 0));
        _refused(STRANGER, pong, abi.encodeWithSelector(MarketNotSlotHolder.selector, id, 0, STRANGER));
        _ping(id, 0, REQUESTER);
        uint256 pongBy = market.slot(id, 0).pongBy;
        vm.warp(pongBy);
        _refused(_worker(0), pong, _tooLate(id, pongBy));
    }

    /// @dev Rules T4, P2, P4: an evicted worker loses the fault part of its stake, from which nobody
    /// gains.
    function testFuzz_evictionBurnsThePenalty(uint96 stake) external {
        Terms memory terms = _terms(Policy.Audit);
        terms.stake = uint96(_bound(stake, 8 * FEE, CREDIT));
        TaskId id = _running(terms);
        _ping(id, 0, REQUESTER);
        vm.warp(market.slot(id, 0).pongBy);
        uint256 penalty = uint256(terms.stake) / 5;

        vm.prank(STRANGER);
        market.evict(id, 0);

        uint256 escrow = REWARD + 2 * FEE;
        _assertCredit(market, _worker(0), CREDIT - penalty);
        _assertCredit(market, STRANGER, 0);
        _assertCredit(market, REQUESTER, CREDIT - escrow);
        _assertCredit(market, BURN, penalty);
        vm.assertEq(market.task(id).locked, escrow);
        vm.assertEq(market.account(_worker(0)).failed, 1);
        _assertBalanced(market);
    }

    /// @dev Rules T4, C1: nobody is evicted unasked, before its time, after its answer, or after the end.
    function test_wrongEvictionsAreRefused() external {
        TaskId id = _running(_terms(Policy.Audit, 2));
        bytes memory evict = abi.encodeCall(market.evict, (id, 0));

        _refused(STRANGER, evict, abi.encodeWithSelector(ILiveness.MarketNotPinged.selector, id, 0));
        _ping(id, 0, REQUESTER);
        uint256 pongBy = market.slot(id, 0).pongBy;
        vm.warp(pongBy - 1);
        _refused(STRANGER, evict, _tooEarly(id, pongBy));
        _submit(id, 0, _claim());
        vm.warp(pongBy);
        _refused(STRANGER, evict, abi.encodeWithSelector(MarketAlreadyAnswered.selector, id, 0));
        uint256 trainBy = market.task(id).deadline;
        vm.warp(trainBy - 1);
        _ping(id, 1, REQUESTER);
        vm.warp(market.slot(id, 1).pongBy);
        _refused(STRANGER, abi.encodeCall(market.evict, (id, 1)), _tooLate(id, trainBy));
    }

    /// @dev Rule T5: an evicted slot is free for a replacement, which starts unasked.
    function test_replacementOfAnEvictedWorker() external {
        TaskId id = _running(_terms(Policy.Audit, 2));
        uint256 trainBy = market.task(id).deadline;
        _evict(id, 1);

        _join(id, _worker(2));

        Slot memory slot = market.slot(id, 1);
        vm.assertEq(slot.worker, _worker(2));
        vm.assertEq(slot.pongBy, 0);
        vm.assertEq(market.task(id).deadline, trainBy);
        vm.assertEq(market.task(id).joined, 3);
    }

    /// @dev Rule T5: once somebody has answered the slot stays empty, and the others' answers are all
    /// that the task waits for.
    function test_noReplacementAfterAnAnswer() external {
        TaskId id = _running(_terms(Policy.Audit, 2));
        _submit(id, 0, _claim());
        _evict(id, 1);

        _refused(
            _worker(2),
            abi.encodeCall(market.join, (id, CARD, new bytes32[](0))),
            abi.encodeWithSelector(ITasks.MarketNoVacancy.selector, id)
        );
        _expire(id);
        _assertState(market, id, TaskState.Submitted);
    }

    function _ping(TaskId id, uint256 slot, address by) private {
        vm.prank(by);
        market.ping(id, slot);
    }

    function _evict(TaskId id, uint256 slot) private {
        _ping(id, slot, REQUESTER);
        vm.warp(market.slot(id, slot).pongBy);
        vm.prank(STRANGER);
        market.evict(id, slot);
    }
}
