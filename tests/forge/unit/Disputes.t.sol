// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice How disputes begin, and what is refused on their way.
contract DisputesTest is DisputeDriver {
    uint32 private constant SEGMENT = 4;

    /// @dev Rule D2: a challenge takes a bond, keeps the workers' state, and calls referees.
    function test_challenge() external {
        TaskId id = _unaudited(1);

        _challenge(id, SEGMENT);

        Dispute memory dispute = market.dispute(id, SEGMENT);
        vm.assertEq(dispute.accuser, CHALLENGER);
        vm.assertEq(dispute.bond, BOND);
        vm.assertEq(dispute.claimed, _after(SEGMENT));
        vm.assertEq(dispute.auditSeat, 0);
        vm.assertEq(dispute.round, 1);
        _assertDispute(market, id, SEGMENT, DisputeState.Called);
        _assertState(market, id, TaskState.Disputed);
        _assertCredit(market, CHALLENGER, CREDIT - BOND);
        vm.assertEq(market.panel(id, SEGMENT, 1).pool, AUDITORS);
    }

    /// @dev Rules D2, A10, C1: a challenge shows a state of the claim, once per segment, within the window.
    function test_wrongChallengesAreRefused() external {
        TaskId id = _unaudited(1);
        bytes32[] memory proof = _proof(SEGMENTS, SEGMENT);
        Claim memory other = _claimNamed("other");

        _refusedChallenge(id, SEGMENT, other, proof, _wrongClaim(id, other));
        bytes memory wrongProof = abi.encodeWithSelector(IDisputes.MarketWrongProof.selector, id, SEGMENT + 1);
        _refusedChallenge(id, SEGMENT + 1, _claim(), proof, wrongProof);
        _refusedChallenge(
            id, SEGMENTS, _claim(), proof, abi.encodeWithSelector(IDisputes.MarketNoSuchSegment.selector, id, SEGMENTS)
        );
        _challenge(id, SEGMENT);
        _refusedChallenge(id, SEGMENT, _claim(), proof, _unexpectedDispute(id, SEGMENT, DisputeState.Called));
        uint256 challengeBy = market.task(id).deadline;
        vm.warp(challengeBy);
        _refusedChallenge(id, 0, _claim(), proof, _tooLate(id, challengeBy));
        TaskId submitted = _submitted(_terms(Policy.Audit));
        _refusedChallenge(submitted, 0, _claim(), proof, _unexpectedState(submitted, TaskState.Submitted));
        TaskId score = _auditing(_terms(Policy.Score));
        _refusedChallenge(score, 0, _claim(), proof, _wrongPolicy(score, Policy.Score));
    }

    /// @dev Rule D2: without credit for the bond there is no challenge.
    function test_challengeWithoutCreditIsRefused() external {
        TaskId id = _unaudited(1);

        _refused(
            STRANGER,
            abi.encodeCall(market.challengeUnserved, (id, SEGMENT)),
            abi.encodeWithSelector(IVault.MarketInsufficientCredit.selector, STRANGER, 0, BOND)
        );
    }

    /// @dev Rule D3: workers have a time to show the leaf, and then referees are called.
    function test_serve() external {
        TaskId id = _unaudited(1);
        _challengeUnserved(id, SEGMENT);
        _assertDispute(market, id, SEGMENT, DisputeState.Unserved);
        uint256 serveBy = _now() + 10 minutes;
        vm.assertEq(market.dispute(id, SEGMENT).deadline, serveBy);
        vm.warp(serveBy - 1);

        _serve(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Called);
        vm.assertEq(market.dispute(id, SEGMENT).claimed, _after(SEGMENT));
    }

    /// @dev Rules D3, A10, C1: what is served is proven, asked for, and in time.
    function test_wrongServingsAreRefused() external {
        TaskId id = _unaudited(1);
        _challengeUnserved(id, SEGMENT);
        bytes32[] memory proof = _proof(SEGMENTS, SEGMENT);
        Claim memory other = _claimNamed("other");
        bytes memory wrongProof = abi.encodeWithSelector(IDisputes.MarketWrongProof.selector, id, SEGMENT);

        _refusedServe(id, SEGMENT, other, 0, proof, _wrongClaim(id, other));
        _refusedServe(id, SEGMENT, _claim(), OTHER, proof, wrongProof);
        _refusedServe(id, SEGMENT, _claim(), 0, proof, wrongProof);
        _refusedServe(id, 0, _claim(), _after(0), proof, _unexpectedDispute(id, 0, DisputeState.None));
        uint256 serveBy = market.dispute(id, SEGMENT).deadline;
        vm.warp(serveBy);
        _refusedServe(id, SEGMENT, _claim(), _after(SEGMENT), proof, _tooLate(id, serveBy));
        TaskId calm = _unaudited(1);
        _refusedServe(calm, SEGMENT, _claim(), _after(SEGMENT), proof, _unexpectedState(calm, TaskState.Window));
    }

    /// @dev Rule D1: an auditor that found something else accuses, with the bond of its seat.
    function test_auditorAccuses() external {
        TaskId id = _openingWith(_terms(Policy.Audit), OTHER);
        _open(id, _claim());
        uint32 segment = _seat(id, 0).segment;

        _auditReveal(id, 0, OTHER);

        Dispute memory dispute = market.dispute(id, segment);
        vm.assertEq(dispute.accuser, _seat(id, 0).member);
        vm.assertEq(dispute.auditSeat, 1);
        vm.assertEq(dispute.bond, 0);
        vm.assertEq(dispute.claimed, _after(segment));
        _assertDispute(market, id, segment, DisputeState.Called);
        _assertState(market, id, TaskState.Disputed);
        _auditReveal(id, 1, _after(_seat(id, 1).segment));
        vm.assertEq(market.panel(id, OWN_PANEL, 0).disputes, 1);
    }

    /// @dev Rules D1, A8: where a challenger came first, that verdict also judges the auditor.
    function test_auditorBehindAChallenger() external {
        TaskId id = _openingWith(_terms(Policy.Audit), OTHER);
        _open(id, _claim());
        uint32 segment = _seat(id, 0).segment;
        _challenge(id, segment);

        _auditReveal(id, 0, OTHER);

        vm.assertEq(market.dispute(id, segment).accuser, CHALLENGER);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).disputes, 1);
        _rule(id, segment, _three(_after(segment), _after(segment), _after(segment)));
        _auditReveal(id, 1, _after(_seat(id, 1).segment));
        _passDeadline(id);
        _settle(id);
        vm.assertEq(market.worker(_seat(id, 0).member).bond, AUDITOR_BOND - BOND);
        vm.assertEq(market.account(_seat(id, 0).member).auditsWrong, 1);
    }

    /// @dev Rules A3, D4: a committee holds neither parties, nor the accuser, nor the task's auditors.
    function test_committeeIsApart() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 4;
        TaskId id = _audited(terms);
        vm.prank(CHALLENGER);
        market.register(PROFILE, ENV_CLASS, AUDITOR_BOND);
        _wait(1);
        _challenge(id, SEGMENT);

        _drawReferees(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Hearing);
        vm.assertEq(_referees(id, SEGMENT), 3);
        vm.assertEq(market.dispute(id, SEGMENT).deadline, _now() + 1 hours);
        for (uint256 i = 0; i < 3; ++i) {
            address referee = _referee(id, SEGMENT, i);
            vm.assertEq(market.worker(referee).bondLocked, BOND);
            vm.assertTrue(referee != CHALLENGER);
            for (uint256 j = 0; j < 4; ++j) vm.assertTrue(referee != _seat(id, j).member);
        }
    }

    /// @dev Rule A1: referees too are drawn by a block to come, or by a later one.
    function test_refereesArePostponed() external {
        TaskId id = _disputed(1, SEGMENT);
        uint256 drawBlock = market.panel(id, SEGMENT, 1).drawBlock;
        _refused(
            STRANGER,
            abi.encodeCall(market.drawReferees, (id, SEGMENT)),
            abi.encodeWithSelector(IDisputes.MarketDrawPending.selector, id, drawBlock)
        );
        vm.roll(drawBlock + 257);

        market.drawReferees(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Called);
        vm.assertEq(market.panel(id, SEGMENT, 1).drawBlock, drawBlock + 258);
    }

    /// @dev Rules D4, A6, C1: referees commit once, each for its own seat, in time.
    function test_wrongRefereeCommitsAreRefused() external {
        TaskId id = _disputed(1, SEGMENT);
        _drawReferees(id, SEGMENT);
        address referee = _referee(id, SEGMENT, 0);
        bytes memory commit = abi.encodeCall(market.refereeCommit, (id, SEGMENT, 0, bytes32("c")));

        _refused(STRANGER, commit, abi.encodeWithSelector(IDisputes.MarketNotSeatHolder.selector, id, 0, STRANGER));
        _refereeCommit(id, SEGMENT, 0, OTHER);
        _refused(
            referee,
            commit,
            abi.encodeWithSelector(IDisputes.MarketUnexpectedSeat.selector, id, 0, SeatState.Committed)
        );
        _refused(
            STRANGER,
            abi.encodeCall(market.refereeReveal, (id, SEGMENT, 0, SALT, OTHER)),
            _unexpectedDispute(id, SEGMENT, DisputeState.Hearing)
        );
        uint256 commitBy = market.dispute(id, SEGMENT).deadline;
        vm.warp(commitBy);
        _refused(referee, commit, _tooLate(id, commitBy));
    }

    /// @dev Rules D4, A6, C1: referees reveal what they committed to, in time.
    function test_wrongRefereeRevealsAreRefused() external {
        TaskId id = _disputed(1, SEGMENT);
        _drawReferees(id, SEGMENT);
        for (uint256 i = 0; i < 3; ++i) _refereeCommit(id, SEGMENT, i, OTHER);
        _assertDispute(market, id, SEGMENT, DisputeState.Ruling);
        uint256 revealBy = _now() + 10 minutes;
        vm.assertEq(market.dispute(id, SEGMENT).deadline, revealBy);

        _refused(
            STRANGER,
            abi.encodeCall(market.refereeReveal, (id, SEGMENT, 0, SALT, bytes32("else"))),
            abi.encodeWithSelector(IDisputes.MarketWrongAnswer.selector, id, 0)
        );
        vm.warp(revealBy);
        _refused(
            STRANGER,
            abi.encodeCall(market.refereeReveal, (id, SEGMENT, 0, SALT, OTHER)),
            _tooLate(id, revealBy)
        );
    }

    /// @dev Rules C1, C2: a dispute is moved on when its stage is over, and not before.
    function test_wrongResolvesAreRefused() external {
        TaskId id = _disputed(1, SEGMENT);
        bytes memory resolve = abi.encodeCall(market.resolve, (id, SEGMENT));

        _refused(STRANGER, resolve, _unexpectedDispute(id, SEGMENT, DisputeState.Called));
        _refused(STRANGER, abi.encodeCall(market.resolve, (id, 0)), _unexpectedDispute(id, 0, DisputeState.None));
        _drawReferees(id, SEGMENT);
        uint256 deadline = market.dispute(id, SEGMENT).deadline;
        _refused(STRANGER, resolve, _tooEarly(id, deadline));
        for (uint256 i = 0; i < 3; ++i) _refereeCommit(id, SEGMENT, i, _after(SEGMENT));
        deadline = market.dispute(id, SEGMENT).deadline;
        for (uint256 i = 0; i < 2; ++i) _refereeReveal(id, SEGMENT, i, _after(SEGMENT));
        vm.warp(deadline - 1);
        _refused(STRANGER, resolve, _tooEarly(id, deadline));
        _refused(STRANGER, abi.encodeCall(market.settle, (id)), _unexpectedState(id, TaskState.Disputed));
        vm.warp(deadline);
        _resolve(id, SEGMENT);
        _assertDispute(market, id, SEGMENT, DisputeState.Rejected);
    }

    /// @dev Rules D5, D6: a second committee that cannot be drawn is given up; of the first one only who
    /// kept silent pays.
    function test_dismissedAfterEscalation() external {
        TaskId id = _disputed(1, SEGMENT);
        _passDeadline(id);
        _rule(id, SEGMENT, _three(_after(SEGMENT), OTHER, SILENT));
        uint256 dismissAt = _now() + 10 minutes + 2 * (1 hours + 10 minutes);
        vm.assertEq(market.dispute(id, SEGMENT).deadline, dismissAt);
        for (uint256 i = 0; i < AUDITORS; ++i) {
            if (market.worker(_auditor(i)).bondLocked != 0) continue;
            vm.prank(_auditor(i));
            market.retire();
        }
        vm.warp(dismissAt);

        _drawReferees(id, SEGMENT);

        _assertDispute(market, id, SEGMENT, DisputeState.Dismissed);
        for (uint256 i = 0; i < 3; ++i) {
            Worker memory referee = market.worker(market.seat(id, SEGMENT, 1, i).member);
            vm.assertEq(referee.bond, i == 2 ? AUDITOR_BOND - BOND / 5 : AUDITOR_BOND);
            vm.assertEq(referee.bondLocked, 0);
        }
        _assertCredit(market, CHALLENGER, CREDIT);
        _assertCredit(market, BURN, BOND / 5);
        _assertState(market, id, TaskState.Window);
        _assertBalanced(market);
    }

    function _wrongClaim(TaskId id, Claim memory claim) private pure returns (bytes memory) {
        return abi.encodeWithSelector(MarketWrongClaim.selector, id, keccak256(abi.encode(claim)));
    }

    function _refusedChallenge(
        TaskId id,
        uint32 segment,
        Claim memory claim,
        bytes32[] memory proof,
        bytes memory reason
    ) private {
        _refused(
            CHALLENGER, abi.encodeCall(market.challenge, (id, segment, claim, _after(SEGMENT), proof)), reason
        );
    }

    function _refusedServe(
        TaskId id,
        uint32 segment,
        Claim memory claim,
        bytes32 state,
        bytes32[] memory proof,
        bytes memory reason
    ) private {
        _refused(STRANGER, abi.encodeCall(market.serve, (id, segment, claim, state, proof)), reason);
    }
}
