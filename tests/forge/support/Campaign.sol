// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../../../contracts/interfaces/IMarketTypes.sol";
import {ITrainingMarket} from "../../../contracts/interfaces/ITrainingMarket.sol";
import {Deployment} from "./Deployment.sol";
import {Handler} from "./Handler.sol";
import {vm} from "./Vm.sol";

/// @notice Runs the handler against a market and knows what must hold after every step.
abstract contract Campaign is Deployment {
    /// @dev What does not add up stays so: adding up after each of these steps misses nothing.
    uint256 private constant SELDOM = 8;

    ITrainingMarket internal market;
    Handler internal handler;

    function _begin(ITrainingMarket market_) internal {
        vm.warp(1_000_000);
        vm.roll(1_000);
        market = market_;
        handler = new Handler(market_);
        _target(address(handler), _steps());
    }

    function _assertAllIsWell() internal view {
        // rules C3, T2, T5, T6, A2, A3, A4, D7, D8: what the handler looks at itself.
        vm.assertEq(handler.violation(), "", "a step found");
        _assertSolvent();
        if (handler.steps() % SELDOM != 0) return;
        _assertMoneyAddsUp();
        _assertBondsStandBehindSeats();
    }

    /// @dev rules V1, V2: money enters and leaves by the vault's doors alone.
    function _assertSolvent() private view {
        (uint256 held, uint256 owed) = market.solvency();
        vm.assertGe(held, owed, "held");
        vm.assertEq(handler.deposited() - handler.withdrawn(), owed, "deposited and not withdrawn");
    }

    /// @dev rules V1, V5: all that is owed is a credit, a task's lock, a member's or a challenger's bond.
    function _assertMoneyAddsUp() internal view {
        uint256 sum = market.account(BURN).credit;
        address[] memory everyone = handler.everyone();
        for (uint256 i = 0; i < everyone.length; ++i) {
            sum += market.account(everyone[i]).credit;
            sum += market.worker(everyone[i]).bond;
        }
        uint256[] memory tasks = handler.liveTasks();
        for (uint256 i = 0; i < tasks.length; ++i) {
            IMarketTypes.TaskId id = IMarketTypes.TaskId.wrap(tasks[i]);
            sum += market.task(id).locked;
            uint32[] memory segments = handler.disputedSegments(tasks[i]);
            for (uint256 j = 0; j < segments.length; ++j) sum += market.dispute(id, segments[j]).bond;
        }
        (, uint256 owed) = market.solvency();
        vm.assertEq(sum, owed, "credits, locks and bonds");
    }

    /// @dev rules W2, W3, A5: bonds are locked behind open seats, and nowhere else.
    function _assertBondsStandBehindSeats() internal view {
        address[] memory everyone = handler.everyone();
        uint256[] memory locked = new uint256[](everyone.length);
        uint256[] memory tasks = handler.liveTasks();
        for (uint256 i = 0; i < tasks.length; ++i) {
            _addSeats(locked, tasks[i], OWN_PANEL, 0);
            uint32[] memory segments = handler.disputedSegments(tasks[i]);
            for (uint256 j = 0; j < segments.length; ++j) {
                uint256 rounds = market.dispute(IMarketTypes.TaskId.wrap(tasks[i]), segments[j]).round;
                for (uint256 round = 1; round <= rounds; ++round) _addSeats(locked, tasks[i], segments[j], round);
            }
        }
        for (uint256 i = 0; i < everyone.length; ++i) _assertBond(everyone[i], locked[i]);
    }

    /// @dev Adds the bonds behind the open seats of a panel to those of their members.
    function _addSeats(uint256[] memory locked, uint256 task, uint32 segment, uint256 round) private view {
        IMarketTypes.TaskId id = IMarketTypes.TaskId.wrap(task);
        uint256 seats = market.panel(id, segment, round).seats;
        if (seats == 0) return;
        uint256 bond = market.bondOf(id);
        for (uint256 i = 0; i < seats; ++i) {
            IMarketTypes.Seat memory s = market.seat(id, segment, round, i);
            if (s.state != IMarketTypes.SeatState.Closed) locked[handler.placeOf(s.member) - 1] += bond;
        }
    }

    function _assertBond(address actor, uint256 locked) private view {
        IMarketTypes.Worker memory w = market.worker(actor);
        vm.assertEq(w.bondLocked, locked, "bond behind seats");
        vm.assertLe(w.bondLocked, w.bond, "more locked than there is");
        if (w.poolIndex == 0) return;
        vm.assertEq(market.poolMember(w.envClass, w.poolIndex - 1), actor, "place in the pool");
    }

    /// @dev rules C2, V4, V5: all that began ends by time, by calls that anyone may make, and then all
    /// money can leave, whatever its receivers do.
    function _assertAllEnds() internal {
        handler.drain();
        vm.assertEq(handler.violation(), "", "the end found");
        (uint256 held, uint256 owed) = market.solvency();
        vm.assertEq(owed, 0, "owed in the end");
        vm.assertEq(held, 0, "held in the end");
        vm.assertEq(handler.deposited(), handler.withdrawn(), "deposited and withdrawn");
        address[] memory everyone = handler.everyone();
        for (uint256 i = 0; i < everyone.length; ++i) {
            vm.assertEq(market.worker(everyone[i]).bond, 0, "bond in the end");
        }
    }

    /// @dev All steps of the handler; posting twice as often, since everything else wants a task.
    function _steps() internal pure returns (bytes4[] memory steps) {
        bytes4[42] memory all = [
            Handler.deposit.selector,
            Handler.withdraw.selector,
            Handler.burn.selector,
            Handler.setHabit.selector,
            Handler.register.selector,
            Handler.setProfile.selector,
            Handler.addBond.selector,
            Handler.setDuty.selector,
            Handler.retire.selector,
            Handler.unbond.selector,
            Handler.setParams.selector,
            Handler.setPaused.selector,
            Handler.post.selector,
            Handler.post.selector,
            Handler.cancel.selector,
            Handler.join.selector,
            Handler.leave.selector,
            Handler.ping.selector,
            Handler.pong.selector,
            Handler.evict.selector,
            Handler.commit.selector,
            Handler.commitBySig.selector,
            Handler.reveal.selector,
            Handler.submit.selector,
            Handler.submitBySig.selector,
            Handler.settle.selector,
            Handler.settleShares.selector,
            Handler.expire.selector,
            Handler.draw.selector,
            Handler.auditCommit.selector,
            Handler.open.selector,
            Handler.auditReveal.selector,
            Handler.scoreReveal.selector,
            Handler.challenge.selector,
            Handler.challengeUnserved.selector,
            Handler.serve.selector,
            Handler.drawReferees.selector,
            Handler.refereeCommit.selector,
            Handler.refereeReveal.selector,
            Handler.resolve.selector,
            Handler.passTime.selector,
            Handler.passBlocks.selector
        ];
        steps = new bytes4[](all.length);
        for (uint256 i = 0; i < all.length; ++i) steps[i] = all[i];
    }
}
