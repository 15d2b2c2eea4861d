// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice Draws that wait for members, in a class of three whose bonds are good for one seat each.
contract AwaitedTest is DisputeDriver {
    event SeatsAwaited(TaskId indexed id, uint256 segment, uint256 round, bytes32 seed, uint256 found);
    event SeatsUnassigned(TaskId indexed id, uint256 segment, uint256 round, uint256 missing);

    uint32 private constant SEGMENT = 4;
    uint256 private constant POOL = 3;

    function setUp() public override {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        market = _deploy();
        _deposit(market, REQUESTER, CREDIT);
        _deposit(market, CHALLENGER, CREDIT);
        _enrol(1);
        for (uint256 i = 0; i < POOL; ++i) {
            _deposit(market, _auditor(i), BOND);
            _register(market, _auditor(i), BOND);
        }
        _wait(1);
    }

    /// @dev Rules A5, C1, C2: fewer than demanded are waited for, by what was drawn once; when the time is
    /// over everyone is refunded.
    function test_tooFewAuditors() external {
        Terms memory terms = _terms(Policy.Score);
        terms.minAudits = 3;
        TaskId id = _submitted(terms);
        vm.prank(_auditor(0));
        market.retire();
        bytes32 seed = _reach(id, OWN_PANEL, 0);
        uint256 drawBy = market.task(id).deadline;

        vm.expectEmit(address(market));
        emit SeatsAwaited(id, OWN_PANEL, 0, seed, 2);
        market.draw(id);

        _assertState(market, id, TaskState.Submitted);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).seed, seed);
        vm.warp(drawBy - 1);
        _refusedDraw(id, 2, 3);
        // The hash is long out of reach, and not asked for again.
        vm.roll(vm.getBlockNumber() + 1_000);
        vm.warp(drawBy);
        market.draw(id);
        _assertState(market, id, TaskState.Failed);
        _assertCredit(market, REQUESTER, CREDIT);
        _assertCredit(market, _worker(0), CREDIT);
    }

    /// @dev Rules A2, A5: a seat waits for its member while other seats hold the member's bond.
    function test_busyAuditorIsAwaited() external {
        TaskId first = _window(_terms(Policy.Audit));
        for (uint256 i = 0; i < 2; ++i) _auditReveal(first, i, _after(_seat(first, i).segment));
        Terms memory terms = _terms(Policy.Audit);
        (terms.audits, terms.auditFor) = (3, 1 days);
        TaskId second = _submitted(terms);
        bytes32 seed = _reach(second, OWN_PANEL, 0);

        vm.expectEmit(address(market));
        emit SeatsAwaited(second, OWN_PANEL, 0, seed, 1);
        market.draw(second);

        _refusedDraw(second, 1, 3);
        _passDeadline(first);
        _settle(first);
        market.draw(second);
        vm.assertEq(_seats(second), 3);
        _assertState(market, second, TaskState.Auditing);
    }

    /// @dev Rules A5, C2: nobody is waited for beyond the time of the draw.
    function test_busyAuditorIsGivenUp() external {
        _auditing(_terms(Policy.Audit));
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 3;
        TaskId id = _submitted(terms);
        _reach(id, OWN_PANEL, 0);
        _passDeadline(id);

        vm.expectEmit(address(market));
        emit SeatsUnassigned(id, OWN_PANEL, 0, 2);
        market.draw(id);

        vm.assertEq(_seats(id), 1);
        _assertState(market, id, TaskState.Auditing);
    }

    /// @dev Rule A2: whose bond was slashed below a seat's is not waited for, but passed over.
    function test_spentBondIsPassedOver() external {
        TaskId silent = _auditing(_terms(Policy.Audit));
        _passDeadline(silent);
        _open(silent, _claim());
        _passDeadline(silent);
        _settle(silent);
        TaskId id = _submitted(_terms(Policy.Audit));

        _draw(id);

        vm.assertEq(_seats(id), 1);
        vm.assertEq(market.worker(_seat(id, 0).member).bond, BOND);
        vm.assertEq(market.worker(_seat(id, 0).member).bondLocked, BOND);
    }

    /// @dev Rules D6, C1: too few referees are waited for until other disputes can have ended; then nobody
    /// is judged.
    function test_tooFewReferees() external {
        TaskId id = _disputed(1, SEGMENT);
        for (uint256 i = 1; i < POOL; ++i) {
            vm.prank(_auditor(i));
            market.retire();
        }
        bytes32 seed = _reach(id, SEGMENT, 1);
        uint256 dismissAt = market.dispute(id, SEGMENT).deadline;
        vm.assertEq(dismissAt, market.task(id).deadline + 10 minutes + 2 * (1 hours + 10 minutes));
        vm.expectEmit(address(market));
        emit SeatsAwaited(id, SEGMENT, 1, seed, 1);
        market.drawReferees(id, SEGMENT);
        vm.warp(dismissAt - 1);
        _refusedReferees(id, 1, 2);

        vm.warp(dismissAt);
        market.drawReferees(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Dismissed);
        _assertState(market, id, TaskState.Window);
        _assertCredit(market, CHALLENGER, CREDIT);
        _settle(id);
        _assertCredit(market, _worker(0), CREDIT + REWARD);
        _assertBalanced(market);
    }

    /// @dev Rules D6, A8: what a drawn auditor contests is not paid for unjudged: everyone is refunded, and
    /// the auditor neither earns nor loses.
    function test_contestedAndUnjudged() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 1;
        TaskId id = _openingWith(terms, OTHER);
        _open(id, _claim());
        address auditor = _seat(id, 0).member;
        uint32 segment = _seat(id, 0).segment;
        _auditReveal(id, 0, OTHER);
        for (uint256 i = 0; i < POOL; ++i) {
            if (_auditor(i) == auditor) continue;
            vm.prank(_auditor(i));
            market.retire();
        }
        _reach(id, segment, 1);
        _passDispute(id, segment);

        market.drawReferees(id, segment);

        _assertDispute(market, id, segment, DisputeState.Inconclusive);
        _assertState(market, id, TaskState.Failed);
        _assertCredit(market, REQUESTER, CREDIT);
        _assertCredit(market, _worker(0), CREDIT);
        _assertCredit(market, auditor, 0);
        vm.assertEq(market.worker(auditor).bond, BOND);
        vm.assertEq(market.worker(auditor).bondLocked, 0);
        vm.assertEq(market.account(auditor).auditsRight + market.account(auditor).auditsWrong, 0);
        _assertBalanced(market);
    }

    /// @dev Rule D6: a busy referee is waited for though the others were enough; in the end they are.
    function test_busyReferee() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 1;
        _auditing(terms);
        TaskId id = _disputed(1, SEGMENT);
        _reach(id, SEGMENT, 1);
        market.drawReferees(id, SEGMENT);
        _assertDispute(market, id, SEGMENT, DisputeState.Called);
        _refusedReferees(id, 2, 3);
        _passDispute(id, SEGMENT);

        vm.expectEmit(address(market));
        emit SeatsUnassigned(id, SEGMENT, 1, 1);
        market.drawReferees(id, SEGMENT);

        vm.assertEq(_referees(id, SEGMENT), 2);
        _assertDispute(market, id, SEGMENT, DisputeState.Hearing);
    }

    /// @dev Goes to where the panel can be drawn.
    /// @return seed what draws it
    function _reach(TaskId id, uint32 segment, uint256 round) private returns (bytes32 seed) {
        uint256 drawBlock = market.panel(id, segment, round).drawBlock;
        vm.roll(drawBlock + 1);
        return keccak256(abi.encode(blockhash(drawBlock), id, segment, round));
    }

    function _refusedDraw(TaskId id, uint256 found, uint256 needed) private {
        _refused(
            STRANGER,
            abi.encodeCall(market.draw, (id)),
            abi.encodeWithSelector(ITasks.MarketTooFewAuditors.selector, found, needed)
        );
    }

    function _refusedReferees(TaskId id, uint256 found, uint256 needed) private {
        _refused(
            STRANGER,
            abi.encodeCall(market.drawReferees, (id, SEGMENT)),
            abi.encodeWithSelector(ITasks.MarketTooFewAuditors.selector, found, needed)
        );
    }
}
