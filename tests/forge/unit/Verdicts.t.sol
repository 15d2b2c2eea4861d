// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice What a verdict means for workers, accusers and referees.
contract VerdictsTest is DisputeDriver {
    event TaskFailed(TaskId indexed id, Failure reason, uint256 refunded);

    uint32 private constant SEGMENT = 4;

    /// @dev Rules D4, P3: workers found wrong lose their stakes: referees are paid, one stake is split, and
    /// what is more burns.
    function test_upheld() external {
        TaskId id = _disputed(2, SEGMENT);
        uint256 rest = 2 * uint256(STAKE) - 3 * FEE;
        _hear(id, SEGMENT, _three(TRUE, TRUE, TRUE));

        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.Fraud, 2 * REWARD);
        _resolve(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Upheld);
        vm.assertEq(market.dispute(id, SEGMENT).truth, TRUE);
        _assertCredit(market, CHALLENGER, CREDIT + STAKE / 2);
        _assertCredit(market, REQUESTER, CREDIT + uint256(STAKE) * 3 / 10);
        _assertCredit(market, BURN, rest - STAKE / 2 - uint256(STAKE) * 3 / 10);
        for (uint256 i = 0; i < 2; ++i) {
            _assertCredit(market, _worker(i), CREDIT - STAKE);
            vm.assertEq(market.account(_worker(i)).failed, 1);
        }
        for (uint256 i = 0; i < 3; ++i) _assertReferee(id, 1, i, FEE, 0);
        _assertFailed(id);
    }

    /// @dev Rules D4, P3, P4: a wrong accuser pays the referees and the accused; an outvoted referee loses
    /// its whole bond, a silent one the fault part.
    function test_rejected() external {
        TaskId id = _disputed(1, SEGMENT);
        uint256 rest = uint256(BOND) - 2 * FEE;

        _rule(id, SEGMENT, _three(_after(SEGMENT), _after(SEGMENT), OTHER));

        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
        _assertState(market, id, TaskState.Window);
        _assertCredit(market, CHALLENGER, CREDIT - BOND);
        _assertCredit(market, _worker(0), CREDIT - STAKE + rest / 2);
        _assertCredit(market, REQUESTER, CREDIT - REWARD + rest * 3 / 10);
        _assertReferee(id, 1, 0, FEE, 0);
        _assertReferee(id, 1, 2, 0, BOND);
        _assertCredit(market, BURN, rest - rest / 2 - rest * 3 / 10 + BOND);
        vm.assertEq(market.account(_referee(id, SEGMENT, 2)).auditsWrong, 1);
        _assertBalanced(market);
    }

    /// @dev Rules D4, P4: a majority of the full committee decides, whoever of it kept silent.
    function test_silentReferee() external {
        TaskId id = _disputed(1, SEGMENT);

        _rule(id, SEGMENT, _three(SILENT, _after(SEGMENT), _after(SEGMENT)));

        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
        _assertReferee(id, 1, 0, 0, BOND / 5);
        _assertReferee(id, 1, 1, FEE, 0);
    }

    /// @dev Rules D4, A8: a referee that committed must reveal; one that was not served pays for a fault.
    function test_unrevealedAndStarvedReferees() external {
        TaskId id = _disputed(1, SEGMENT);
        _rule(id, SEGMENT, _three(_after(SEGMENT), TRUE, OTHER));
        bytes32[] memory answers =
            _five(_after(SEGMENT), _after(SEGMENT), _after(SEGMENT), UNSERVED, _after(SEGMENT));
        _drawReferees(id, SEGMENT);
        for (uint256 i = 0; i < 5; ++i) _refereeCommit(id, SEGMENT, i, answers[i]);
        for (uint256 i = 0; i < 4; ++i) _refereeReveal(id, SEGMENT, i, answers[i]);
        _passDispute(id, SEGMENT);

        _resolve(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
        _assertReferee(id, 2, 0, FEE, 0);
        _assertReferee(id, 2, 3, 0, BOND / 5);
        _assertReferee(id, 2, 4, 0, BOND);
    }

    /// @dev Rules D3, D4: who said that served data was not served pays the referees and for a fault, and the
    /// accused gain nothing.
    function test_servedAfterAll() external {
        TaskId id = _unaudited(1);
        _challengeUnserved(id, SEGMENT);
        _serve(id, SEGMENT);

        _rule(id, SEGMENT, _three(_after(SEGMENT), _after(SEGMENT), _after(SEGMENT)));

        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
        _assertCredit(market, CHALLENGER, CREDIT - 3 * FEE - BOND / 5);
        _assertCredit(market, _worker(0), CREDIT - STAKE);
        _assertCredit(market, BURN, BOND / 5);
        _assertBalanced(market);
    }

    /// @dev Rule D4: where fees and fault would cost more than the bond, the bond is all that is lost.
    function test_servedAfterAllForTheWholeBond() external {
        Params memory p = _params();
        p.faultBps = 5_000;
        (p.referees, p.escalation) = (5, 7);
        vm.prank(OWNER);
        market.setParams(p);
        Terms memory terms = _terms(Policy.Audit);
        (terms.audits, terms.auditFee) = (0, BOND / 12);
        TaskId id = _submitted(terms);
        market.draw(id);
        _challengeUnserved(id, SEGMENT);
        _serve(id, SEGMENT);
        bytes32[] memory divided = _five(_after(SEGMENT), _after(SEGMENT), TRUE, TRUE, OTHER);
        bytes32[] memory agreed = new bytes32[](7);
        for (uint256 i = 0; i < 7; ++i) agreed[i] = _after(SEGMENT);
        _rule(id, SEGMENT, divided);

        _rule(id, SEGMENT, agreed);

        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
        _assertCredit(market, CHALLENGER, CREDIT - BOND);
        // Three referees of the first committee were outvoted in the end.
        _assertCredit(market, BURN, BOND - 9 * uint256(terms.auditFee) + 3 * BOND);
        _assertBalanced(market);
    }

    /// @dev Rule D5: without a majority a larger committee of others decides, and its truth judges both.
    function test_escalated() external {
        TaskId id = _disputed(1, SEGMENT);
        _rule(id, SEGMENT, _three(_after(SEGMENT), TRUE, OTHER));
        _assertDispute(market, id, SEGMENT, DisputeState.Called);
        vm.assertTrue(market.dispute(id, SEGMENT).escalated);
        vm.assertEq(_round(id, SEGMENT), 2);

        _rule(id, SEGMENT, _five(TRUE, TRUE, TRUE, OTHER, SILENT));

        _assertDispute(market, id, SEGMENT, DisputeState.Upheld);
        _assertReferee(id, 1, 0, 0, BOND);
        _assertReferee(id, 1, 1, FEE, 0);
        _assertReferee(id, 1, 2, 0, BOND);
        _assertReferee(id, 2, 0, FEE, 0);
        _assertReferee(id, 2, 3, 0, BOND);
        _assertReferee(id, 2, 4, 0, BOND / 5);
        for (uint256 i = 0; i < 3; ++i) {
            for (uint256 j = 0; j < 5; ++j) {
                vm.assertTrue(market.seat(id, SEGMENT, 1, i).member != market.seat(id, SEGMENT, 2, j).member);
            }
        }
        uint256 pot = uint256(STAKE) - 4 * FEE;
        _assertCredit(market, CHALLENGER, CREDIT + pot / 2);
        _assertFailed(id);
    }

    /// @dev Rule D5: two committees without a majority end the task; everyone is refunded, and only
    /// silence costs.
    function test_inconclusive() external {
        TaskId id = _disputed(1, SEGMENT);
        _rule(id, SEGMENT, _three(_after(SEGMENT), TRUE, OTHER));
        _hear(id, SEGMENT, _five(_after(SEGMENT), _after(SEGMENT), TRUE, OTHER, SILENT));

        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.Inconclusive, REWARD);
        _resolve(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Inconclusive);
        _assertCredit(market, CHALLENGER, CREDIT);
        _assertCredit(market, REQUESTER, CREDIT);
        _assertCredit(market, _worker(0), CREDIT);
        _assertReferee(id, 1, 2, 0, 0);
        _assertReferee(id, 2, 4, 0, BOND / 5);
        _assertCredit(market, BURN, BOND / 5);
        _assertFailed(id);
    }

    /// @dev Rules D3, P3: workers who do not show the leaf in time lose their stakes.
    function test_unserved() external {
        TaskId id = _unaudited(1);
        _challengeUnserved(id, SEGMENT);
        uint256 serveBy = market.dispute(id, SEGMENT).deadline;
        vm.warp(serveBy - 1);
        _refused(STRANGER, abi.encodeCall(market.resolve, (id, SEGMENT)), _tooEarly(id, serveBy));

        vm.warp(serveBy);
        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.Withheld, REWARD);
        _resolve(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Upheld);
        _assertCredit(market, CHALLENGER, CREDIT + STAKE / 2);
        _assertCredit(market, REQUESTER, CREDIT + uint256(STAKE) * 3 / 10);
        _assertCredit(market, BURN, uint256(STAKE) / 5);
        _assertFailed(id);
    }

    /// @dev Rules D7, C2: a task that ended through one dispute voids the others, in whatever stage.
    function test_otherDisputesAreVoid() external {
        TaskId id = _disputed(1, SEGMENT);
        _challenge(id, 1);
        _drawReferees(id, 1);
        _refereeCommit(id, 1, 0, TRUE);
        _challengeUnserved(id, 7);
        _rule(id, SEGMENT, _three(TRUE, TRUE, TRUE));
        uint256 credit = _credit(market, CHALLENGER);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).disputes, 2);

        _resolve(id, 1);
        _resolve(id, 7);

        _assertDispute(market, id, 1, DisputeState.Void);
        _assertDispute(market, id, 7, DisputeState.Void);
        _assertCredit(market, CHALLENGER, credit + 2 * BOND);
        for (uint256 i = 0; i < 3; ++i) {
            vm.assertEq(market.worker(_referee(id, 1, i)).bond, AUDITOR_BOND);
            vm.assertEq(market.worker(_referee(id, 1, i)).bondLocked, 0);
        }
        _refused(
            STRANGER, abi.encodeCall(market.resolve, (id, 1)), _unexpectedDispute(id, 1, DisputeState.Void)
        );
        _assertFailed(id);
    }

    /// @dev Rule D8: while one of two disputes is open the task does not settle.
    function test_twoDisputes() external {
        TaskId id = _disputed(1, SEGMENT);
        _challenge(id, 1);
        _rule(id, SEGMENT, _three(_after(SEGMENT), _after(SEGMENT), _after(SEGMENT)));
        _assertState(market, id, TaskState.Disputed);

        _rule(id, 1, _three(_after(1), _after(1), _after(1)));

        _assertState(market, id, TaskState.Window);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).disputes, 0);
    }

    function _assertReferee(TaskId id, uint256 round, uint256 index, uint256 earned, uint256 lost) private view {
        _assertMember(market.seat(id, SEGMENT, round, index), earned, lost);
    }
}
