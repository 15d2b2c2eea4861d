// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Scores, their medians, and who of the evaluators was right.
contract ScoresTest is TaskDriver {
    event TaskFailed(TaskId indexed id, Failure reason, uint256 refunded);

    uint256 private constant POOL = 16;

    function setUp() public override {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        market = _deploy();
        _deposit(market, REQUESTER, CREDIT);
        _enrol(4);
        _bondAuditors(POOL);
        _wait(1);
    }

    /// @dev Rules P6, A9, A8: a claim is paid if the median of the revealed scores reaches the target; who
    /// is off it while most are not loses its bond, and so does who did not reveal.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_median(uint256 seed, uint8 audits, uint32 spread, uint32 tolerance, uint16 hidden) external {
        Terms memory terms = _terms(Policy.Score);
        terms.audits = uint8(2 * _bound(audits, 0, 7) + 1);
        terms.target = 1_000;
        terms.tolerance = uint32(_bound(tolerance, 0, 100));
        spread = uint32(_bound(spread, 1, 400));
        TaskId id = _auditing(terms);
        uint32[] memory scores = new uint32[](terms.audits);
        for (uint256 i = 0; i < scores.length; ++i) {
            scores[i] = uint32(1_000 - spread / 2 + uint256(keccak256(abi.encode(seed, i))) % spread);
            _scoreCommit(id, i, _row(scores[i]));
        }
        // At least the first reveals.
        for (uint256 i = 0; i < scores.length; ++i) {
            if (i == 0 || !_isHidden(hidden, i)) _scoreReveal(id, i, _row(scores[i]));
        }
        _passDeadline(id);

        _settle(id);

        (uint256 median, uint256 near) = _naive(scores, hidden, terms.tolerance);
        bool paid = median >= terms.target;
        _assertState(market, id, paid ? TaskState.Settled : TaskState.Failed);
        uint256 fees = 0;
        for (uint256 i = 0; i < scores.length; ++i) {
            uint256 lost = 0;
            if (i != 0 && _isHidden(hidden, i)) lost = BOND;
            else if (_distance(scores[i], median) > terms.tolerance && near * 2 > scores.length) lost = BOND;
            vm.assertEq(market.worker(_seat(id, i).member).bond, AUDITOR_BOND - lost, "bond");
            _assertCredit(market, _seat(id, i).member, lost == 0 ? FEE : 0);
            if (lost == 0) fees += FEE;
        }
        _assertCredit(market, _worker(0), paid ? CREDIT + REWARD : CREDIT);
        _assertCredit(market, REQUESTER, CREDIT - fees - (paid ? REWARD : 0));
        _assertBalanced(market);
    }

    /// @dev Rules P5, A9: a contest pays everything to the revealed entry with the highest median, of equals
    /// the one with the lowest slot.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_contest(uint256 seed, uint8 hidden) external {
        Terms memory terms = _terms(Policy.Contest, 4);
        (terms.target, terms.tolerance) = (0, type(uint32).max);
        Claim[] memory claims = _entries(4);
        TaskId id = _revealing(terms, claims);
        for (uint256 i = 0; i < 4; ++i) {
            if (i == 3 || !_isHidden(hidden, i)) _reveal(id, i, claims[i]);
        }
        if (market.task(id).state == TaskState.Revealing) {
            _passDeadline(id);
            _expire(id);
        }
        _draw(id);
        uint32[][] memory rows = new uint32[][](3);
        for (uint256 i = 0; i < 3; ++i) rows[i] = _randomRow(seed, i);
        for (uint256 i = 0; i < 3; ++i) _scoreCommit(id, i, rows[i]);
        for (uint256 i = 0; i < 3; ++i) _scoreReveal(id, i, rows[i]);

        _settle(id);

        uint256 winner = _naiveWinner(rows, hidden);
        vm.assertEq(market.task(id).lead, winner);
        for (uint256 i = 0; i < 4; ++i) {
            uint256 credit = i == winner ? CREDIT + 4 * REWARD : CREDIT;
            if (i != 3 && _isHidden(hidden, i)) credit -= PENALTY;
            _assertCredit(market, _worker(i), credit);
        }
        _assertCredit(market, REQUESTER, CREDIT - 4 * REWARD - 3 * FEE);
        _assertBalanced(market);
    }

    /// @dev Rules P5, A9: numbers for an entry that was not revealed judge nobody.
    function test_absentEntriesJudgeNobody() external {
        Terms memory terms = _terms(Policy.Contest, 2);
        TaskId id = _revealing(terms, _entries(2));
        _reveal(id, 0, _entries(2)[0]);
        _passDeadline(id);
        _expire(id);
        _draw(id);
        uint32[3] memory absent = [uint32(0), 0, 999];
        for (uint256 i = 0; i < 3; ++i) _scoreCommit(id, i, _pair(950, absent[i]));
        for (uint256 i = 0; i < 3; ++i) _scoreReveal(id, i, _pair(950, absent[i]));

        _settle(id);

        for (uint256 i = 0; i < 3; ++i) _assertCredit(market, _seat(id, i).member, FEE);
        _assertCredit(market, _worker(0), CREDIT + 2 * REWARD);
        _assertCredit(market, _worker(1), CREDIT - PENALTY);
    }

    /// @dev Rules P5, A8: a contest below its target pays nobody but the evaluators.
    function test_contestBelowTarget() external {
        uint32[][] memory rows = new uint32[][](3);
        for (uint256 i = 0; i < 3; ++i) rows[i] = _pair(899, 5);
        TaskId id = _scored(_terms(Policy.Contest, 2), rows);

        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.BelowTarget, 2 * REWARD);
        _settle(id);

        _assertCredit(market, _worker(0), CREDIT);
        _assertCredit(market, _worker(1), CREDIT);
        _assertCredit(market, REQUESTER, CREDIT - 3 * FEE);
    }

    /// @dev Rules P5, T10: a contest in which nobody reveals fails, as does one without enough entries.
    function test_contestWithoutEntries() external {
        TaskId hidden = _revealing(_terms(Policy.Contest, 2), _entries(2));
        _passDeadline(hidden);
        _expire(hidden);
        _assertState(market, hidden, TaskState.Failed);
        _assertCredit(market, _worker(0), CREDIT - PENALTY);

        TaskId absent = _running(_terms(Policy.Contest, 2));
        _passDeadline(absent);
        _expire(absent);
        _assertState(market, absent, TaskState.Failed);
        _assertCredit(market, _worker(0), CREDIT - 2 * PENALTY);
        _assertCredit(market, BURN, 4 * PENALTY);
        _assertCredit(market, REQUESTER, CREDIT);
    }

    /// @dev Rules A8, P6: without a single score the task fails, and who committed to one loses its bond.
    function test_noScore() external {
        TaskId id = _auditing(_terms(Policy.Score));
        for (uint256 i = 0; i < 3; ++i) _scoreCommit(id, i, _row(950));
        uint256 revealBy = market.panel(id, OWN_PANEL, 0).revealBy;
        vm.warp(revealBy - 1);
        _refused(STRANGER, abi.encodeCall(market.settle, (id)), _tooEarly(id, revealBy));

        vm.warp(revealBy);
        vm.expectEmit(address(market));
        emit TaskFailed(id, Failure.Unaudited, REWARD + 3 * FEE);
        _settle(id);

        for (uint256 i = 0; i < 3; ++i) {
            _assertCredit(market, _seat(id, i).member, 0);
            vm.assertEq(market.worker(_seat(id, i).member).bond, AUDITOR_BOND - BOND);
        }
        _assertCredit(market, _worker(0), CREDIT);
        _assertBalanced(market);
    }

    /// @dev Rules C2, A8: evaluators who never commit do not hold a task up.
    function test_noCommitment() external {
        TaskId id = _auditing(_terms(Policy.Score));
        uint256 commitBy = market.task(id).deadline;
        vm.warp(commitBy - 1);
        _refused(STRANGER, abi.encodeCall(market.expire, (id)), _tooEarly(id, commitBy));
        vm.warp(commitBy);
        _expire(id);
        _assertState(market, id, TaskState.Window);

        _settle(id);

        _assertState(market, id, TaskState.Failed);
        _assertCredit(market, BURN, 3 * (BOND / 5));
        _assertCredit(market, REQUESTER, CREDIT);
    }

    /// @dev Rules A6, P6, C1: scores are revealed as committed, one per entry, in their time.
    function test_wrongScoreRevealsAreRefused() external {
        TaskId id = _auditing(_terms(Policy.Score));
        for (uint256 i = 0; i < 3; ++i) _scoreCommit(id, i, _row(950));

        _refusedScores(id, 0, _row(951), abi.encodeWithSelector(IDisputes.MarketWrongAnswer.selector, id, 0));
        _refusedScores(id, 0, _pair(9, 5), abi.encodeWithSelector(IDisputes.MarketWrongLength.selector, 2, 1));
        _scoreReveal(id, 0, _row(950));
        vm.assertEq(market.scores(id, 0)[0], 950);
        uint256 revealBy = market.task(id).deadline;
        vm.warp(revealBy);
        _refusedScores(id, 1, _row(950), _tooLate(id, revealBy));
        TaskId audit = _window(_terms(Policy.Audit));
        _refusedScores(audit, 0, _row(1), _wrongPolicy(audit, Policy.Audit));
        TaskId early = _auditing(_terms(Policy.Score));
        _refusedScores(early, 0, _row(1), _unexpectedState(early, TaskState.Auditing));
    }

    function _refusedScores(TaskId id, uint256 seat, uint32[] memory scores, bytes memory reason) private {
        _refused(STRANGER, abi.encodeCall(market.scoreReveal, (id, seat, SALT, scores)), reason);
    }

    function _isHidden(uint256 map, uint256 index) private pure returns (bool) {
        return map >> index & 1 == 1;
    }

    function _row(uint32 score) private pure returns (uint32[] memory row) {
        row = new uint32[](1);
        row[0] = score;
    }

    function _pair(uint32 first, uint32 second) private pure returns (uint32[] memory row) {
        row = new uint32[](2);
        (row[0], row[1]) = (first, second);
    }

    /// @dev Few values, so that medians are often equal.
    function _randomRow(uint256 seed, uint256 seat) private pure returns (uint32[] memory row) {
        row = new uint32[](4);
        for (uint256 i = 0; i < 4; ++i) row[i] = uint32(uint256(keccak256(abi.encode(seed, seat, i))) % 4);
    }

    /// @dev The median of the scores that were revealed, and how many of these are near it.
    function _naive(uint32[] memory scores, uint256 hidden, uint256 tolerance)
        private
        pure
        returns (uint256 median, uint256 near)
    {
        uint32[] memory shown = new uint32[](scores.length);
        uint256 count = 0;
        for (uint256 i = 0; i < scores.length; ++i) {
            if (i == 0 || !_isHidden(hidden, i)) shown[count++] = scores[i];
        }
        median = _lowerMedian(shown, count);
        for (uint256 i = 0; i < count; ++i) {
            if (_distance(shown[i], median) <= tolerance) ++near;
        }
    }

    /// @dev By bubble sort.
    function _lowerMedian(uint32[] memory values, uint256 count) private pure returns (uint256) {
        for (uint256 i = 0; i < count; ++i) {
            for (uint256 j = 0; j + 1 < count; ++j) {
                if (values[j] > values[j + 1]) (values[j], values[j + 1]) = (values[j + 1], values[j]);
            }
        }
        return values[(count - 1) / 2];
    }

    function _naiveWinner(uint32[][] memory rows, uint256 hidden) private pure returns (uint256 winner) {
        uint256 best = 0;
        winner = 4;
        for (uint256 entry = 0; entry < 4; ++entry) {
            if (entry != 3 && _isHidden(hidden, entry)) continue;
            uint32[] memory given = new uint32[](3);
            for (uint256 i = 0; i < 3; ++i) given[i] = rows[i][entry];
            uint256 median = _lowerMedian(given, 3);
            if (winner == 4 || median > best) (winner, best) = (entry, median);
        }
    }

    function _distance(uint256 a, uint256 b) private pure returns (uint256) {
        return a > b ? a - b : b - a;
    }
}
