// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice How tasks end, and what everyone has then.
contract EndingsTest is TaskDriver {
    event TaskSettled(TaskId indexed id, uint256 lead, uint256 paid, uint256 refunded);
    event TaskFailed(TaskId indexed id, Failure reason, uint256 refunded);
    event TaskCancelled(TaskId indexed id, uint256 refunded);

    bytes32 private constant FOUND = keccak256("found");

    function setUp() public override {
        super.setUp();
        _enrol(5);
    }

    /// @dev Rules T2, V5: the requester takes an open task back, and everyone gets everything back.
    function test_cancel() external {
        TaskId id = _post(_terms(Policy.Audit, 2));
        _join(id, _worker(0));

        vm.expectEmit(address(market));
        emit TaskCancelled(id, 2 * REWARD + 2 * FEE);
        vm.prank(REQUESTER);
        market.cancel(id);

        _assertCredit(market, REQUESTER, CREDIT);
        _assertCredit(market, _worker(0), CREDIT);
        _assertEnded(id, TaskState.Cancelled);
    }

    /// @dev Rule T2: nobody else cancels, and nobody a task that runs.
    function test_wrongCancelsAreRefused() external {
        TaskId id = _post(_terms(Policy.Replicate));
        bytes memory cancel = abi.encodeCall(market.cancel, (id));

        _refused(STRANGER, cancel, abi.encodeWithSelector(ISettlement.MarketNotRequester.selector, id, STRANGER));
        _join(id, _worker(0));
        _refused(REQUESTER, cancel, _unexpectedState(id, TaskState.Running));
    }

    /// @dev Rules T2, C1, C2: a task that is not filled in time ends as if cancelled.
    function test_expireOpen() external {
        TaskId id = _post(_terms(Policy.Replicate, 2));
        _join(id, _worker(0));
        uint256 joinBy = market.task(id).deadline;
        vm.warp(joinBy - 1);
        _refusedExpire(id, _tooEarly(id, joinBy));

        vm.warp(joinBy);
        _expire(id);

        _assertCredit(market, REQUESTER, CREDIT);
        _assertCredit(market, _worker(0), CREDIT);
        _assertEnded(id, TaskState.Cancelled);
    }

    /// @dev Rules T10, P2, V5: without a quorum of commitments the escrow goes back, and absence costs.
    function test_noQuorumOfCommitments() external {
        TaskId id = _running(_terms(Policy.Replicate, 3));
        _commit(id, 0, _claim());
        uint256 trainBy = market.task(id).deadline;
        vm.warp(trainBy - 1);
        _refusedExpire(id, _tooEarly(id, trainBy));

        vm.warp(trainBy);
        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.NoQuorum, 3 * REWARD);
        _expire(id);

        _assertCredit(market, REQUESTER, CREDIT);
        _assertWorker(0, CREDIT, 0, 0);
        _assertWorker(1, CREDIT - PENALTY, 0, 1);
        _assertWorker(2, CREDIT - PENALTY, 0, 1);
        _assertCredit(market, BURN, 2 * PENALTY);
        _assertEnded(id, TaskState.Failed);
    }

    /// @dev Rules T9, P1, P2, P4, V5: the majority is paid; who disagreed and who did not reveal lose the fault
    /// part, which nobody gets.
    function test_replicateMajority() external {
        Claim[] memory claims = _alike(5);
        claims[1] = _claimNamed("other");
        TaskId id = _revealing(_terms(Policy.Replicate, 5), claims);
        for (uint256 i = 0; i < 4; ++i) _reveal(id, i, claims[i]);
        bytes memory settle = abi.encodeCall(market.settle, (id));
        uint256 revealBy = market.task(id).deadline;
        vm.warp(revealBy - 1);
        _refused(STRANGER, settle, _tooEarly(id, revealBy));
        _refusedExpire(id, _tooEarly(id, revealBy));

        vm.warp(revealBy);
        vm.expectEmit(address(market));
        emit TaskSettled(id, 0, 3 * (REWARD + STAKE) + 2 * STAKE, 2 * REWARD);
        _settle(id);

        _assertWorker(0, CREDIT + REWARD, 1, 0);
        _assertWorker(1, CREDIT - PENALTY, 0, 1);
        _assertWorker(3, CREDIT + REWARD, 1, 0);
        _assertWorker(4, CREDIT - PENALTY, 0, 1);
        _assertCredit(market, REQUESTER, CREDIT - 3 * REWARD);
        _assertCredit(market, BURN, 2 * PENALTY);
        _assertEnded(id, TaskState.Settled);
    }

    /// @dev Rules T9, C2: all reveals are in, so that nothing is left to wait for.
    function test_settleAtTheLastReveal() external {
        TaskId id = _revealing(_terms(Policy.Replicate, 2), _alike(2));
        _reveal(id, 0, _claim());
        _reveal(id, 1, _claim());

        _expire(id);

        _assertWorker(1, CREDIT + REWARD, 1, 0);
        _assertEnded(id, TaskState.Settled);
    }

    /// @dev Rule T10: reveals without a majority send all stakes and the escrow back.
    function test_noMajority() external {
        Claim[] memory claims = _entries(3);
        TaskId id = _revealing(_terms(Policy.Replicate, 3), claims);
        for (uint256 i = 0; i < 3; ++i) _reveal(id, i, claims[i]);

        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.NoQuorum, 3 * REWARD);
        _settle(id);

        for (uint256 i = 0; i < 3; ++i) _assertWorker(i, CREDIT, 0, 0);
        _assertCredit(market, REQUESTER, CREDIT);
        _assertEnded(id, TaskState.Failed);
    }

    /// @dev Rules T9, P1: of two groups the larger one wins, wherever it stands.
    function test_largestGroupLeads() external {
        Claim[] memory claims = _alike(5);
        claims[0] = _claimNamed("other");
        claims[2] = claims[0];
        TaskId id = _revealing(_terms(Policy.Replicate, 5), claims);
        for (uint256 i = 0; i < 5; ++i) _reveal(id, i, claims[i]);

        _settle(id);

        vm.assertEq(market.task(id).lead, 1);
        _assertWorker(1, CREDIT + REWARD, 1, 0);
        _assertWorker(0, CREDIT - PENALTY, 0, 1);
    }

    /// @dev Rules T8, P2: under Audit a dissenter is not paid and burns the fault part once the lead claim
    /// was found good.
    function test_dissenterUnderAudit() external {
        Terms memory terms = _terms(Policy.Audit, 3);
        terms.quorum = 2;
        terms.audits = 0;
        TaskId id = _running(terms);
        _submit(id, 0, _claimNamed("other"));
        _submit(id, 1, _claim());
        _submit(id, 2, _claim());
        vm.assertEq(market.task(id).lead, 1);
        market.draw(id);
        _passDeadline(id);

        _settle(id);

        _assertWorker(0, CREDIT - PENALTY, 0, 1);
        _assertWorker(1, CREDIT + REWARD, 1, 0);
        _assertWorker(2, CREDIT + REWARD, 1, 0);
        _assertCredit(market, REQUESTER, CREDIT - 2 * REWARD);
        _assertEnded(id, TaskState.Settled);
    }

    /// @dev Rules T8, T10, P2: claims without a quorum fail the task, and nobody is to blame, the absent
    /// neither.
    function test_noQuorumUnderAudit() external {
        Terms memory terms = _terms(Policy.Audit, 3);
        terms.quorum = 2;
        TaskId id = _running(terms);
        _submit(id, 0, _claim());
        _submit(id, 1, _claimNamed("other"));
        _passDeadline(id);

        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.NoQuorum, 3 * REWARD + 2 * FEE);
        _expire(id);

        _assertCredit(market, REQUESTER, CREDIT);
        for (uint256 i = 0; i < 3; ++i) _assertWorker(i, CREDIT, 0, 0);
        _assertEnded(id, TaskState.Failed);
    }

    /// @dev Rule P2: who works with others is excused for absence when one of them was lost, and only
    /// then.
    function test_absenceIsExcusedWhenAPeerWasLost() external {
        TaskId lost = _running(_terms(Policy.Audit, 2));
        vm.prank(REQUESTER);
        market.ping(lost, 1);
        vm.warp(market.slot(lost, 1).pongBy);
        market.evict(lost, 1);
        _passDeadline(lost);
        _expire(lost);
        _assertWorker(0, CREDIT, 0, 0);
        _assertWorker(1, CREDIT - PENALTY, 0, 1);
        _assertEnded(lost, TaskState.Failed);

        TaskId whole = _running(_terms(Policy.Audit));
        _passDeadline(whole);
        _expire(whole);
        _assertWorker(0, CREDIT - PENALTY, 0, 1);
        _assertCredit(market, BURN, 2 * PENALTY);
        _assertEnded(whole, TaskState.Failed);
    }

    /// @dev Rules A7, A8, P3: workers who do not open lose their stakes; nobody found it, so that part
    /// burns; auditors who committed are paid, and who dissented keeps its stake.
    function test_withheldOpening() external {
        Terms memory terms = _terms(Policy.Audit, 2);
        TaskId id = _running(terms);
        _submit(id, 0, _claim());
        _submit(id, 1, _claimNamed("other"));
        _draw(id);
        _auditCommit(id, 0, FOUND);
        _passDeadline(id);
        _expire(id);
        _assertState(market, id, TaskState.Opening);
        uint256 openBy = market.task(id).deadline;
        vm.warp(openBy - 1);
        _refusedExpire(id, _tooEarly(id, openBy));

        vm.warp(openBy);
        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.Withheld, 2 * REWARD + FEE);
        _expire(id);

        _assertWorker(0, CREDIT - STAKE, 0, 1);
        _assertWorker(1, CREDIT, 0, 0);
        _assertCredit(market, REQUESTER, CREDIT - FEE + uint256(STAKE) * 3 / 10);
        _assertCredit(market, BURN, uint256(STAKE) * 7 / 10 + BOND / 5);
        _assertCredit(market, _seat(id, 0).member, FEE);
        vm.assertEq(market.account(_seat(id, 0).member).auditsRight, 1);
        vm.assertEq(market.account(_seat(id, 1).member).auditsWrong, 1);
        vm.assertEq(market.worker(_seat(id, 1).member).bond, AUDITOR_BOND - BOND / 5);
        _assertEnded(id, TaskState.Failed);
    }

    /// @dev Rule C2: what has no time to pass is refused with its state.
    function test_nothingToExpire() external {
        TaskId none = TaskId.wrap(99);
        _refusedExpire(none, _unexpectedState(none, TaskState.None));
        TaskId submitted = _submitted(_terms(Policy.Audit));
        _refusedExpire(submitted, _unexpectedState(submitted, TaskState.Submitted));
        TaskId running = _running(_terms(Policy.Score));
        _refused(
            STRANGER, abi.encodeCall(market.settle, (running)), _unexpectedState(running, TaskState.Running)
        );
    }

    /// @dev Rules D8, A8, C1: a task waits for its window, and for its auditors' time to reveal; who
    /// committed and did not reveal loses its bond.
    function test_settleWaitsForWindowAndReveals() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.challengeFor = 0;
        TaskId id = _window(terms);
        bytes memory settle = abi.encodeCall(market.settle, (id));
        uint256 revealBy = market.panel(id, OWN_PANEL, 0).revealBy;
        _auditReveal(id, 0, _after(_seat(id, 0).segment));
        vm.warp(revealBy - 1);
        _refused(STRANGER, settle, _tooEarly(id, revealBy));

        vm.warp(revealBy);
        _settle(id);

        _assertWorker(0, CREDIT + REWARD, 1, 0);
        _assertCredit(market, _seat(id, 0).member, FEE);
        _assertCredit(market, REQUESTER, CREDIT - REWARD - FEE);
        _assertCredit(market, BURN, BOND);
        _assertEnded(id, TaskState.Settled);
    }

    /// @dev Rules A8, V5: all auditors agree: each earns its fee and has its bond free again.
    function test_auditedTaskSettles() external {
        TaskId id = _audited(_terms(Policy.Audit));
        uint256 challengeBy = market.task(id).deadline;
        vm.warp(challengeBy - 1);
        _refused(STRANGER, abi.encodeCall(market.settle, (id)), _tooEarly(id, challengeBy));

        vm.warp(challengeBy);
        vm.expectEmit(address(market));
        emit TaskSettled(id, 0, REWARD + STAKE, 0);
        _settle(id);

        for (uint256 i = 0; i < 2; ++i) {
            address member = _seat(id, i).member;
            _assertCredit(market, member, FEE);
            vm.assertEq(market.worker(member).bondLocked, 0);
            vm.assertEq(market.account(member).auditsRight, 1);
            vm.assertEq(uint256(_seat(id, i).state), uint256(SeatState.Closed));
        }
        _assertCredit(market, REQUESTER, CREDIT - REWARD - 2 * FEE);
        _assertEnded(id, TaskState.Settled);
    }

    function _alike(uint256 count) private pure returns (Claim[] memory claims) {
        claims = new Claim[](count);
        for (uint256 i = 0; i < count; ++i) claims[i] = _claim();
    }

    function _assertWorker(uint256 index, uint256 credit, uint256 settled, uint256 failed) private view {
        _assertCredit(market, _worker(index), credit);
        vm.assertEq(market.account(_worker(index)).settled, settled, "settled");
        vm.assertEq(market.account(_worker(index)).failed, failed, "failed");
    }

    function _assertEnded(TaskId id, TaskState state) private view {
        _assertState(market, id, state);
        vm.assertEq(market.task(id).locked, 0, "locked");
        _assertBalanced(market);
    }

    function _refusedExpire(TaskId id, bytes memory reason) private {
        _refused(STRANGER, abi.encodeCall(market.expire, (id)), reason);
    }
}
