// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice What a verdict means for the auditors of a task.
contract AuditorVerdictsTest is DisputeDriver {
    /// @dev Rule D4: an auditor that answered the truth blind comes before a challenger that was faster.
    function test_auditorComesBeforeTheChallenger() external {
        TaskId id = _openingWith(_terms(Policy.Audit), TRUE);
        _open(id, _claim());
        uint32 segment = _seat(id, 0).segment;
        _challenge(id, segment);
        _auditReveal(id, 0, TRUE);
        uint256 pot = uint256(STAKE) - 3 * FEE;

        _rule(id, segment, _three(TRUE, TRUE, TRUE));

        _assertAuditor(id, 0, FEE + pot / 2, 0);
        _assertCredit(market, CHALLENGER, CREDIT);
        _assertFailed(id);
    }

    /// @dev Rule A8: an answer that was contested and never judged earns its fee if the task ended as a
    /// fraud.
    function test_contestedAnswerOfAFraud() external {
        TaskId id = _accused(OTHER);
        uint32 free = _free(id);
        _challenge(id, free);

        _rule(id, free, _three(TRUE, TRUE, TRUE));

        _assertAuditor(id, 0, FEE, 0);
        _resolve(id, _seat(id, 0).segment);
        _assertDispute(market, id, _seat(id, 0).segment, DisputeState.Void);
        _assertFailed(id);
    }

    /// @dev Rules D3, A8: referees who cannot fetch the data answer zero; an auditor of that segment is not
    /// proven wrong by it.
    function test_servedLeafWithoutData() external {
        TaskId id = _audited(_terms(Policy.Audit));
        uint32 segment = _seat(id, 0).segment;
        _challengeUnserved(id, segment);
        _serve(id, segment);

        _rule(id, segment, _three(0, 0, 0));

        _assertDispute(market, id, segment, DisputeState.Upheld);
        _assertAuditor(id, 0, FEE, 0);
        _assertAuditor(id, 1, FEE, 0);
        _assertCredit(market, _worker(0), CREDIT - STAKE);
        _assertFailed(id);
    }

    /// @dev Rules D1, D4, A8: an accusing auditor that was right earns its fee and the finder's part.
    function test_rightAuditor() external {
        TaskId id = _accused(TRUE);
        uint256 pot = uint256(STAKE) - 3 * FEE;

        _ruleSeat(id, TRUE);

        _assertAuditor(id, 0, FEE + pot / 2, 0);
        vm.assertEq(market.account(_seat(id, 0).member).auditsRight, 1);
        _assertFailed(id);
    }

    /// @dev Rules D4, A8: an accusing auditor that guessed gains nothing though the workers were wrong.
    function test_guessingAuditor() external {
        TaskId id = _accused(OTHER);
        uint256 pot = uint256(STAKE) - 3 * FEE;

        _ruleSeat(id, TRUE);

        _assertAuditor(id, 0, 0, BOND);
        _assertCredit(market, BURN, pot - pot * 3 / 10 + BOND);
        _assertFailed(id);
    }

    /// @dev Rules D1, D4: an accusing auditor that was wrong pays with the bond of its seat.
    function test_wrongAuditor() external {
        TaskId id = _accused(OTHER);
        uint32 segment = _seat(id, 0).segment;
        uint256 rest = uint256(BOND) - 3 * FEE;

        _ruleSeat(id, _after(segment));

        _assertAuditor(id, 0, 0, BOND);
        vm.assertEq(market.account(_seat(id, 0).member).auditsWrong, 1);
        _auditReveal(id, 1, _after(_seat(id, 1).segment));
        _passDeadline(id);
        _settle(id);
        _assertAuditor(id, 0, 0, BOND);
        _assertAuditor(id, 1, FEE, 0);
        _assertCredit(market, _worker(0), CREDIT + REWARD + rest / 2);
        _assertCredit(market, REQUESTER, CREDIT - REWARD - FEE + rest * 3 / 10);
        _assertBalanced(market);
    }

    /// @dev Rules D4, A8: an auditor that was not served accuses in good faith: it pays the referees and
    /// for a fault, and nobody earns by starving it.
    function test_starvedAuditor() external {
        TaskId id = _accused(UNSERVED);

        _ruleSeat(id, _after(_seat(id, 0).segment));

        _assertAuditor(id, 0, 0, 3 * FEE + BOND / 5);
        vm.assertEq(market.account(_seat(id, 0).member).auditsWrong, 1);
        _assertCredit(market, _worker(0), CREDIT - STAKE);
        _assertCredit(market, BURN, BOND / 5);
        _assertBalanced(market);
    }

    /// @dev Rules D4, A8: an auditor that was not served is not wrong where the workers were, and found
    /// nothing.
    function test_starvedAuditorOfAFraud() external {
        TaskId id = _accused(UNSERVED);
        uint256 pot = uint256(STAKE) - 3 * FEE;

        _ruleSeat(id, TRUE);

        _assertAuditor(id, 0, FEE, 0);
        _assertCredit(market, BURN, pot - pot * 3 / 10);
        _assertFailed(id);
    }

    /// @dev Rule A8: by a challenger's verdict an auditor that was not served loses the fault part at most.
    function test_starvedAuditorBehindAChallenger() external {
        TaskId id = _openingWith(_terms(Policy.Audit), UNSERVED);
        _open(id, _claim());
        uint32 segment = _seat(id, 0).segment;
        _challenge(id, segment);
        _auditReveal(id, 0, UNSERVED);
        _auditReveal(id, 1, _after(_seat(id, 1).segment));
        _rule(id, segment, _three(_after(segment), _after(segment), _after(segment)));
        _passDeadline(id);

        _settle(id);

        _assertAuditor(id, 0, 0, BOND / 5);
        _assertAuditor(id, 1, FEE, 0);
    }

    /// @dev Rule A8: an auditor that confirmed what referees found wrong loses its bond.
    function test_auditorThatConfirmedAFraud() external {
        TaskId id = _audited(_terms(Policy.Audit));
        uint32 segment = _seat(id, 0).segment;
        _challenge(id, segment);

        _rule(id, segment, _three(TRUE, TRUE, TRUE));

        _assertAuditor(id, 0, 0, BOND);
        _assertAuditor(id, 1, FEE, 0);
        _assertFailed(id);
    }

    /// @dev Rule A8: a commitment earns the fee only while its time to reveal is not over.
    function test_unrevealedAnswerOfAFailedTask() external {
        for (uint256 i = 0; i < 2; ++i) {
            TaskId id = _window(_terms(Policy.Audit));
            address member = _seat(id, 1).member;
            uint256 bond = market.worker(member).bond;
            uint256 credit = _credit(market, member);
            _auditReveal(id, 0, _after(_seat(id, 0).segment));
            _challenge(id, _free(id));
            if (i == 1) vm.warp(market.panel(id, OWN_PANEL, 0).revealBy);

            _rule(id, _free(id), _three(TRUE, TRUE, TRUE));

            _assertCredit(market, member, i == 0 ? credit + FEE : credit);
            vm.assertEq(market.worker(member).bond, i == 0 ? bond : bond - BOND);
        }
    }

    /// @dev A task whose first auditor has answered `answer` against the workers.
    function _accused(bytes32 answer) private returns (TaskId id) {
        id = _openingWith(_terms(Policy.Audit), answer);
        _open(id, _claim());
        _auditReveal(id, 0, answer);
    }

    function _ruleSeat(TaskId id, bytes32 truth) private {
        _rule(id, _seat(id, 0).segment, _three(truth, truth, truth));
    }

    /// @dev A segment that no auditor has.
    function _free(TaskId id) private view returns (uint32 segment) {
        while (segment == _seat(id, 0).segment || segment == _seat(id, 1).segment) ++segment;
    }

    function _assertAuditor(TaskId id, uint256 index, uint256 earned, uint256 lost) private view {
        _assertMember(_seat(id, index), earned, lost);
    }
}
