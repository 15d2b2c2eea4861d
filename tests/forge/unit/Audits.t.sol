// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Draws, blind answers, and openings.
contract AuditsTest is TaskDriver {
    event SeatsUnassigned(TaskId indexed id, uint256 segment, uint256 round, uint256 missing);
    event DrawPostponed(TaskId indexed id, uint256 segment, uint256 round, uint256 drawBlock);

    /// @dev Rules A5, A1: a draw seats members of the pool, each with its bond behind the seat.
    function test_drawSeatsMembers() external {
        TaskId id = _submitted(_terms(Policy.Audit));

        _draw(id);

        _assertState(market, id, TaskState.Auditing);
        vm.assertEq(_seats(id), 2);
        vm.assertEq(market.task(id).deadline, _now() + 1 hours);
        for (uint256 i = 0; i < 2; ++i) {
            Seat memory seat = _seat(id, i);
            vm.assertEq(uint256(seat.state), uint256(SeatState.Drawn));
            vm.assertEq(market.worker(seat.member).bondLocked, BOND);
        }
        vm.assertTrue(_seat(id, 0).member != _seat(id, 1).member);
    }

    /// @dev Rule A1: nothing is drawn before its block is known.
    function test_earlyDrawIsRefused() external {
        TaskId id = _submitted(_terms(Policy.Audit));
        uint256 drawBlock = market.panel(id, OWN_PANEL, 0).drawBlock;
        bytes memory pending = abi.encodeWithSelector(IDisputes.MarketDrawPending.selector, id, drawBlock);

        vm.roll(drawBlock);
        _refused(STRANGER, abi.encodeCall(market.draw, (id)), pending);
        TaskId running = _running(_terms(Policy.Audit));
        _refused(STRANGER, abi.encodeCall(market.draw, (running)), _unexpectedState(running, TaskState.Running));
    }

    /// @dev Rule A1: a hash out of reach postpones the draw to a block that is yet to come.
    function test_drawIsPostponed() external {
        TaskId id = _submitted(_terms(Policy.Audit));
        uint256 late = market.panel(id, OWN_PANEL, 0).drawBlock + 257;
        vm.roll(late);

        vm.expectEmit(address(market));
        emit DrawPostponed(id, OWN_PANEL, 0, late + 1);
        market.draw(id);

        _assertState(market, id, TaskState.Submitted);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).drawBlock, late + 1);
        _draw(id);
        _assertState(market, id, TaskState.Auditing);
    }

    /// @dev Rules A2, A3: newcomers, who changed since the call, and parties are passed over.
    function test_whoIsPassedOver() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 4;
        address party = _auditor(0);
        _deposit(market, party, STAKE);
        TaskId id = _post(terms);
        _join(id, party);
        for (uint256 i = 1; i + 2 < AUDITORS; ++i) _deposit(market, _auditor(i), 1 ether);
        Claim memory claim = _claim();
        vm.prank(party);
        market.submit(id, 0, claim.result, claim.root, new uint16[](0));
        for (uint256 i = 1; i + 2 < AUDITORS; ++i) {
            vm.prank(_auditor(i));
            if (i % 2 == 0) market.addBond(1 ether);
            else market.setDuty(0, 0, 0);
        }

        vm.roll(vm.getBlockNumber() + 2);
        vm.expectEmit(address(market));
        emit SeatsUnassigned(id, OWN_PANEL, 0, 2);
        market.draw(id);

        vm.assertEq(_seats(id), 2);
        vm.assertGe(uint160(_seat(id, 0).member), uint160(_auditor(AUDITORS - 2)));
        vm.assertGe(uint160(_seat(id, 1).member), uint160(_auditor(AUDITORS - 2)));
    }

    /// @dev Rules A3, A5: a pool too large to be walked through is probed at random places.
    function test_drawFromALargePool() external {
        for (uint256 i = AUDITORS; i < 60; ++i) {
            _deposit(market, _auditor(i), AUDITOR_BOND);
            _register(market, _auditor(i), AUDITOR_BOND);
        }
        _wait(1);
        Terms memory terms = _terms(Policy.Audit);
        (terms.audits, terms.segments) = (15, 30);

        TaskId id = _auditing(terms);

        vm.assertEq(_seats(id), 15);
        for (uint256 i = 0; i < 15; ++i) {
            vm.assertEq(market.worker(_seat(id, i).member).bondLocked, BOND);
            for (uint256 j = 0; j < i; ++j) vm.assertTrue(_seat(id, i).member != _seat(id, j).member);
        }
    }

    /// @dev Rules A4, A5: an empty seat drops its own segment; what the others audit does not change.
    function test_emptySeatDropsItsSegment() external {
        Terms memory terms = _terms(Policy.Audit);
        (terms.audits, terms.segments) = (10, 20);
        TaskId id = _submitted(terms);
        vm.roll(vm.getBlockNumber() + 2);
        uint256 called = vm.snapshotState();
        market.draw(id);
        uint32[] memory all = new uint32[](10);
        for (uint256 i = 0; i < 10; ++i) all[i] = _seat(id, i).segment;
        vm.revertToState(called);
        for (uint256 i = 4; i < AUDITORS; ++i) {
            vm.prank(_auditor(i));
            market.retire();
        }

        market.draw(id);

        vm.assertEq(_seats(id), 4);
        uint256 place = 0;
        for (uint256 i = 0; i < 4; ++i) {
            while (place < 10 && all[place] != _seat(id, i).segment) ++place;
            vm.assertLt(place, 10, "a segment that the hash does not name");
        }
    }

    /// @dev Rule A5: who has no bond free is not drawn; fees of empty seats go back to the requester.
    function test_unassignedFeesGoBack() external {
        Terms memory terms = _terms(Policy.Audit);
        (terms.audits, terms.segments) = (15, 30);
        TaskId id = _auditing(terms);
        vm.assertEq(_seats(id), AUDITORS);
        uint256 before = _credit(market, REQUESTER);
        for (uint256 i = 0; i < AUDITORS; ++i) _auditCommit(id, i, _after(_seat(id, i).segment));
        _open(id, _claim(30));
        for (uint256 i = 0; i < AUDITORS; ++i) _auditReveal(id, i, _after(_seat(id, i).segment));
        _passDeadline(id);

        _settle(id);

        _assertCredit(market, REQUESTER, before + 3 * FEE);
    }

    /// @dev Rule A5: with nobody to ask, a task goes on to its window.
    function test_nobodyToAsk() external {
        Terms memory terms = _terms(Policy.Audit);
        TaskId id = _submitted(terms);
        for (uint256 i = 0; i < AUDITORS; ++i) {
            vm.prank(_auditor(i));
            market.retire();
        }

        _draw(id);
        _assertState(market, id, TaskState.Window);
        TaskId empty = _submitted(terms);
        vm.assertEq(market.panel(empty, OWN_PANEL, 0).pool, 0);
        _draw(empty);
        _assertState(market, empty, TaskState.Window);
        vm.assertEq(market.task(empty).deadline, _now() + 1 hours);
        vm.assertEq(market.panel(empty, OWN_PANEL, 0).revealBy, _now() + 10 minutes);
    }

    /// @dev Rule A5: a task without audits needs no block and no auditor.
    function test_drawWithoutAudits() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 0;
        TaskId id = _submitted(terms);

        market.draw(id);

        _assertState(market, id, TaskState.Window);
        _passDeadline(id);
        _settle(id);
        _assertCredit(market, _worker(0), CREDIT + REWARD);
    }

    /// @dev Rule A6: the last commitment opens the stage of opening.
    function test_commitsStartTheOpening() external {
        TaskId id = _opening(_terms(Policy.Audit));

        _assertState(market, id, TaskState.Opening);
        vm.assertEq(market.task(id).deadline, _now() + 10 minutes);
        vm.assertEq(uint256(_seat(id, 0).state), uint256(SeatState.Committed));
    }

    /// @dev Rules A6, C1: a seat's member commits once, in time.
    function test_wrongAuditCommitsAreRefused() external {
        TaskId id = _auditing(_terms(Policy.Audit));
        address member = _seat(id, 0).member;
        bytes memory commit = abi.encodeCall(market.auditCommit, (id, 0, bytes32("c")));

        _refused(STRANGER, commit, abi.encodeWithSelector(IDisputes.MarketNotSeatHolder.selector, id, 0, STRANGER));
        _refused(
            member,
            abi.encodeCall(market.auditCommit, (id, 2, bytes32("c"))),
            abi.encodeWithSelector(IDisputes.MarketNotSeatHolder.selector, id, 2, member)
        );
        _auditCommit(id, 0, bytes32("answer"));
        _refused(
            member,
            commit,
            abi.encodeWithSelector(IDisputes.MarketUnexpectedSeat.selector, id, 0, SeatState.Committed)
        );
        uint256 commitBy = market.task(id).deadline;
        vm.warp(commitBy);
        _refused(member, commit, _tooLate(id, commitBy));
    }

    /// @dev Rule A6: an auditor's commitment is bound to chain, market, task, seat and member.
    function testFuzz_answerCommitment(uint256 task, uint32 segment, uint8 seat, address member, bytes32 answer)
        external
        view
    {
        TaskId id = TaskId.wrap(task);

        bytes32 commitment = market.answerCommitment(id, segment, seat, member, SALT, answer);

        vm.assertEq(commitment, _answer(id, segment, seat, member, answer));
    }

    /// @dev Rules A7, A10: what is opened is kept per seat, and the window starts.
    function test_openStartsTheWindow() external {
        TaskId id = _window(_terms(Policy.Audit));

        _assertState(market, id, TaskState.Window);
        vm.assertEq(market.task(id).deadline, _now() + 1 hours);
        vm.assertEq(market.panel(id, OWN_PANEL, 0).revealBy, _now() + 10 minutes);
        for (uint256 i = 0; i < 2; ++i) vm.assertEq(_seat(id, i).opened, _after(_seat(id, i).segment));
    }

    /// @dev Rules A7, C1: auditors who did not commit in time do not hold up the opening.
    function test_openWithoutAllCommitments() external {
        TaskId id = _auditing(_terms(Policy.Audit));
        (bytes32[] memory states, bytes32[][] memory proofs) = _openedStates(id, SEGMENTS);
        bytes memory open = abi.encodeCall(market.open, (id, _claim(), states, proofs));
        uint256 commitBy = market.task(id).deadline;
        vm.warp(commitBy - 1);
        _refused(STRANGER, open, _tooEarly(id, commitBy));

        vm.warp(commitBy);
        _open(id, _claim());

        _assertState(market, id, TaskState.Window);
    }

    /// @dev Rules A7, A10: an opening shows one proven state of the lead claim per seat, none of them zero.
    function test_wrongOpeningsAreRefused() external {
        TaskId id = _opening(_terms(Policy.Audit));
        (bytes32[] memory states, bytes32[][] memory proofs) = _openedStates(id, SEGMENTS);
        Claim memory other = _claimNamed("other");
        bytes32[] memory short = new bytes32[](1);

        _refusedOpen(
            id,
            other,
            states,
            proofs,
            abi.encodeWithSelector(MarketWrongClaim.selector, id, keccak256(abi.encode(other)))
        );
        bytes memory wrongLength = abi.encodeWithSelector(IDisputes.MarketWrongLength.selector, 1, 2);
        _refusedOpen(id, _claim(), short, proofs, wrongLength);
        _refusedOpen(id, _claim(), states, new bytes32[][](1), wrongLength);
        bytes memory wrongProof = abi.encodeWithSelector(IDisputes.MarketWrongProof.selector, id, _seat(id, 1).segment);
        bytes32 state = states[1];
        states[1] = bytes32("wrong");
        _refusedOpen(id, _claim(), states, proofs, wrongProof);
        states[1] = 0;
        _refusedOpen(id, _claim(), states, proofs, wrongProof);
        states[1] = state;
        uint256 openBy = market.task(id).deadline;
        vm.warp(openBy);
        _refusedOpen(id, _claim(), states, proofs, _tooLate(id, openBy));
    }

    /// @dev Rule A7: nothing is opened in other stages, or where there is no trace.
    function test_openingAtTheWrongTimeIsRefused() external {
        TaskId submitted = _submitted(_terms(Policy.Audit));
        _refusedOpen(
            submitted,
            _claim(),
            new bytes32[](0),
            new bytes32[][](0),
            _unexpectedState(submitted, TaskState.Submitted)
        );
        TaskId score = _auditing(_terms(Policy.Score));
        _refusedOpen(score, _claim(), new bytes32[](0), new bytes32[][](0), _wrongPolicy(score, Policy.Score));
    }

    /// @dev Rule A6: a reveal must be what its member committed to, once, in its time.
    function test_wrongAuditRevealsAreRefused() external {
        TaskId id = _window(_terms(Policy.Audit));
        bytes32 answer = _after(_seat(id, 0).segment);

        _refusedAuditReveal(
            id, 0, bytes32("other"), abi.encodeWithSelector(IDisputes.MarketWrongAnswer.selector, id, 0)
        );
        _refusedAuditReveal(
            id, 2, answer, abi.encodeWithSelector(IDisputes.MarketNotSeatHolder.selector, id, 2, STRANGER)
        );
        _auditReveal(id, 0, answer);
        _refusedAuditReveal(
            id, 0, answer, abi.encodeWithSelector(IDisputes.MarketUnexpectedSeat.selector, id, 0, SeatState.Revealed)
        );
        uint256 revealBy = market.panel(id, OWN_PANEL, 0).revealBy;
        vm.warp(revealBy);
        _refusedAuditReveal(id, 1, answer, _tooLate(id, revealBy));
        TaskId opening = _opening(_terms(Policy.Audit));
        _refusedAuditReveal(opening, 0, answer, _unexpectedState(opening, TaskState.Opening));
        TaskId score = _auditing(_terms(Policy.Score));
        _refusedAuditReveal(score, 0, answer, _wrongPolicy(score, Policy.Score));
    }

    /// @dev Rule A6: a copied commitment names another member and cannot be revealed.
    function test_copiedCommitmentCannotBeRevealed() external {
        TaskId id = _auditing(_terms(Policy.Audit));
        _auditCommit(id, 0, bytes32("answer"));
        bytes32 copied = _seat(id, 0).answer;
        vm.prank(_seat(id, 1).member);
        market.auditCommit(id, 1, copied);
        _open(id, _claim());

        _refusedAuditReveal(
            id, 1, bytes32("answer"), abi.encodeWithSelector(IDisputes.MarketWrongAnswer.selector, id, 1)
        );
    }

    function _refusedOpen(
        TaskId id,
        Claim memory claim,
        bytes32[] memory states,
        bytes32[][] memory proofs,
        bytes memory reason
    ) private {
        _refused(STRANGER, abi.encodeCall(market.open, (id, claim, states, proofs)), reason);
    }

    function _refusedAuditReveal(TaskId id, uint256 seat, bytes32 answer, bytes memory reason) private {
        _refused(STRANGER, abi.encodeCall(market.auditReveal, (id, seat, SALT, answer)), reason);
    }
}
