// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {IWorkers} from "../../../contracts/interfaces/IWorkers.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Posting tasks and filling their slots.
contract TasksTest is TaskDriver {
    /// @dev Rule T1: posting locks the rewards of all slots and the fees of all audits.
    function testFuzz_postLocksTheEscrow(uint8 slots, uint8 audits, uint64 reward, uint64 fee) external {
        Terms memory terms = _terms(Policy.Audit);
        terms.slots = uint8(_bound(slots, 1, 32));
        terms.audits = uint8(_bound(audits, 0, 15));
        terms.reward = uint96(_bound(reward, 0, 1 ether));
        terms.auditFee = uint96(_bound(fee, LEAST_FEE, MOST_FEE));
        uint256 escrow = uint256(terms.reward) * terms.slots + uint256(terms.auditFee) * terms.audits;

        TaskId id = _post(terms);

        vm.assertEq(market.task(id).locked, escrow);
        _assertCredit(market, REQUESTER, CREDIT - escrow);
        vm.assertEq(market.taskCount(), TaskId.unwrap(id));
    }

    /// @dev Rules T1, C3: the task holds the terms that it was posted with.
    function test_postKeepsTheTerms() external {
        Terms memory terms = _terms(Policy.Score, 3);
        terms.quorum = 2;
        terms.sharesAgreed = true;
        terms.minSettled = 4;
        terms.allowList = keccak256("list");

        Task memory task = market.task(_post(terms));

        vm.assertEq(task.requester, REQUESTER);
        vm.assertEq(uint256(task.state), uint256(TaskState.Open));
        vm.assertEq(uint256(task.policy), uint256(Policy.Score));
        vm.assertEq(task.deadline, _now() + 1 hours);
        vm.assertEq(task.slots, 3);
        vm.assertEq(task.quorum, 2);
        vm.assertEq(task.audits, 3);
        vm.assertEq(task.minAudits, 1);
        vm.assertTrue(task.sharesAgreed);
        vm.assertEq(task.minSettled, 4);
        vm.assertEq(task.reward, REWARD);
        vm.assertEq(task.stake, STAKE);
        vm.assertEq(task.auditFee, FEE);
        vm.assertEq(task.target, 900);
        vm.assertEq(task.tolerance, 10);
        vm.assertEq(task.trainFor, 1 days);
        vm.assertEq(task.auditFor, 1 hours);
        vm.assertEq(task.answerFor, 10 minutes);
        vm.assertEq(task.challengeFor, 1 hours);
        vm.assertEq(task.manifest, keccak256("manifest"));
        vm.assertEq(task.envClass, ENV_CLASS);
        vm.assertEq(task.allowList, keccak256("list"));
        vm.assertEq(task.paramsId, 0);
    }

    /// @dev Rules T1, W5: terms that cannot work are refused with the name of the field.
    function test_wrongTermsAreRefused() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.manifest = 0;
        _refusedTerms(terms, "manifest");
        terms = _terms(Policy.Audit);
        terms.envClass = 0;
        _refusedTerms(terms, "envClass");
        terms = _terms(Policy.Audit);
        terms.slots = 0;
        _refusedTerms(terms, "slots");
        terms.slots = 33;
        _refusedTerms(terms, "slots");
        terms = _terms(Policy.Audit);
        terms.auditFee = MOST_FEE + 1;
        _refusedTerms(terms, "auditFee");
        terms = _terms(Policy.Score);
        terms.auditFee = LEAST_FEE - 1;
        _refusedTerms(terms, "auditFee");
        terms = _terms(Policy.Audit);
        terms.stake = 8 * FEE - 1;
        _refusedTerms(terms, "stake");
        terms = _terms(Policy.Audit);
        terms.reward = type(uint96).max - STAKE - 2 * FEE + 1;
        _refusedTerms(terms, "reward");
        terms = _terms(Policy.Replicate);
        terms.sharesAgreed = true;
        _refusedTerms(terms, "sharesAgreed");
        terms = _terms(Policy.Contest);
        terms.sharesAgreed = true;
        _refusedTerms(terms, "sharesAgreed");
    }

    /// @dev Rules T1, T8, T9: a quorum is reachable, under Replicate by more than half of the slots alone, and
    /// where slots work together without all of them.
    function test_wrongQuorumsAreRefused() external {
        Terms memory terms = _terms(Policy.Audit, 4);
        terms.quorum = 0;
        _refusedTerms(terms, "quorum");
        terms.quorum = 5;
        _refusedTerms(terms, "quorum");
        terms.quorum = 3;
        _refusedTerms(terms, "quorum");
        terms = _terms(Policy.Replicate, 4);
        terms.quorum = 2;
        _refusedTerms(terms, "quorum");
    }

    /// @dev Rules T1, A4, P6: audits fit the policy, the trace and the committee's room.
    function test_wrongAuditsAreRefused() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 16;
        _refusedTerms(terms, "audits");
        terms = _terms(Policy.Replicate);
        terms.audits = 1;
        _refusedTerms(terms, "audits");
        terms = _terms(Policy.Score);
        terms.audits = 2;
        _refusedTerms(terms, "audits");
        terms = _terms(Policy.Score);
        terms.minAudits = 0;
        _refusedTerms(terms, "minAudits");
        terms.minAudits = 4;
        _refusedTerms(terms, "minAudits");
        terms = _terms(Policy.Audit);
        (terms.audits, terms.segments, terms.minAudits) = (15, 9, 5);
        _refusedTerms(terms, "minAudits");
        terms = _terms(Policy.Audit);
        terms.segments = 0;
        _refusedTerms(terms, "segments");
        terms.segments = type(uint32).max;
        _refusedTerms(terms, "segments");
        terms = _terms(Policy.Replicate);
        terms.segments = 1;
        _refusedTerms(terms, "segments");
    }

    /// @dev Rules T1, C2: every stage has a time that can be met, and none lasts for ever.
    function test_wrongTimesAreRefused() external {
        uint32 least = _params().minWindow;
        for (uint256 i = 0; i < 2; ++i) {
            bool short = i == 0;
            Terms memory terms = _terms(Policy.Audit);
            terms.joinFor = short ? 0 : 365 days + 1;
            _refusedTerms(terms, "joinFor");
            terms = _terms(Policy.Audit);
            terms.trainFor = short ? least - 1 : 365 days + 1;
            _refusedTerms(terms, "trainFor");
            terms = _terms(Policy.Audit);
            terms.auditFor = short ? least - 1 : 30 days + 1;
            _refusedTerms(terms, "auditFor");
            terms = _terms(Policy.Audit);
            terms.answerFor = short ? least - 1 : 7 days + 1;
            _refusedTerms(terms, "answerFor");
        }
        Terms memory long = _terms(Policy.Audit);
        long.challengeFor = 30 days + 1;
        _refusedTerms(long, "challengeFor");
    }

    /// @dev Rules T1, A5: who demands more auditors than there are learns so at once.
    function test_tooFewAuditorsToPost() external {
        Terms memory terms = _terms(Policy.Score);
        terms.envClass = keccak256("other class");

        _refused(
            REQUESTER,
            abi.encodeCall(market.post, (terms)),
            abi.encodeWithSelector(ITasks.MarketTooFewAuditors.selector, 0, 1)
        );
    }

    /// @dev Rule O1: while the market is paused nothing is posted, and all else goes on.
    function test_pauseStopsPosts() external {
        TaskId id = _post(_terms(Policy.Replicate));
        vm.prank(OWNER);
        market.setPaused(true);

        _refused(
            REQUESTER,
            abi.encodeCall(market.post, (_terms(Policy.Replicate))),
            abi.encodeWithSelector(Pausable.EnforcedPause.selector)
        );
        _join(id, _worker(0));
        _commit(id, 0, _claim());
        _reveal(id, 0, _claim());
        _settle(id);
        vm.prank(_worker(0));
        market.withdraw(_worker(0), CREDIT + REWARD);
        vm.prank(OWNER);
        market.setPaused(false);
        vm.assertEq(TaskId.unwrap(_post(_terms(Policy.Replicate))), 2);
    }

    /// @dev Rule T3: the last join starts the task; each locks its stake.
    function test_lastJoinStartsTheTask() external {
        TaskId id = _post(_terms(Policy.Replicate, 2));

        _join(id, _worker(0));
        _assertState(market, id, TaskState.Open);
        _join(id, _worker(1));

        _assertState(market, id, TaskState.Running);
        vm.assertEq(market.task(id).locked, 2 * (REWARD + STAKE));
        vm.assertEq(market.task(id).deadline, _now() + 1 days);
        vm.assertEq(market.slot(id, 1).worker, _worker(1));
        _assertCredit(market, _worker(1), CREDIT - STAKE);
    }

    /// @dev Rules T3, W1: the requester, strangers and holders of a slot take none.
    function test_conflictsAreRefused() external {
        TaskId id = _post(_terms(Policy.Replicate, 3));
        _join(id, _worker(0));
        vm.prank(REQUESTER);
        market.register(PROFILE, ENV_CLASS, 0);

        _refusedJoin(id, REQUESTER, abi.encodeWithSelector(ITasks.MarketConflict.selector, id, REQUESTER));
        _refusedJoin(id, _worker(0), abi.encodeWithSelector(ITasks.MarketConflict.selector, id, _worker(0)));
        _refusedJoin(id, STRANGER, abi.encodeWithSelector(IWorkers.MarketNotRegistered.selector, STRANGER));
    }

    /// @dev Rule T3: another class will do only where results are scored.
    function test_classOfTheWorker() external {
        bytes32 other = keccak256("other class");
        _deposit(market, STRANGER, CREDIT);
        vm.prank(STRANGER);
        market.register(PROFILE, other, 0);

        TaskId audit = _post(_terms(Policy.Audit));
        _refusedJoin(
            audit, STRANGER, abi.encodeWithSelector(ITasks.MarketWrongClass.selector, STRANGER, other, ENV_CLASS)
        );
        TaskId score = _post(_terms(Policy.Score));
        _join(score, STRANGER);
        _assertState(market, score, TaskState.Running);
    }

    /// @dev Rules T3, W4: a requester may ask for settled tasks on record.
    function test_recordOfTheWorker() external {
        TaskId first = _audited(_terms(Policy.Audit));
        _passDeadline(first);
        _settle(first);
        Terms memory terms = _terms(Policy.Replicate, 2);
        terms.minSettled = 1;
        TaskId id = _post(terms);

        _refusedJoin(id, _worker(1), abi.encodeWithSelector(ITasks.MarketRecordTooShort.selector, _worker(1), 0, 1));
        _join(id, _worker(0));
        vm.assertEq(market.slot(id, 0).worker, _worker(0));
    }

    /// @dev Rule T3: with an allow-list only those on it join.
    function test_allowList() external {
        bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(_worker(0)))));
        bytes32 other = keccak256(bytes.concat(keccak256(abi.encode(_worker(1)))));
        Terms memory terms = _terms(Policy.Replicate, 2);
        terms.allowList = leaf < other ? keccak256(bytes.concat(leaf, other)) : keccak256(bytes.concat(other, leaf));
        TaskId id = _post(terms);
        bytes32[] memory proof = new bytes32[](1);
        proof[0] = other;

        _refused(
            _worker(2),
            abi.encodeCall(market.join, (id, CARD, proof)),
            abi.encodeWithSelector(ITasks.MarketNotAllowed.selector, id, _worker(2))
        );
        vm.prank(_worker(0));
        market.join(id, CARD, proof);
        vm.assertEq(market.slot(id, 0).worker, _worker(0));
    }

    /// @dev Rules T3, C1: joining ends with its time, and with the last slot.
    function test_lateJoinsAreRefused() external {
        TaskId late = _post(_terms(Policy.Replicate));
        uint256 joinBy = market.task(late).deadline;
        vm.warp(joinBy);
        _refusedJoin(late, _worker(0), _tooLate(late, joinBy));

        TaskId full = _running(_terms(Policy.Replicate));
        _refusedJoin(full, _worker(1), abi.encodeWithSelector(ITasks.MarketNoVacancy.selector, full));
        _commit(full, 0, _claim());
        _refusedJoin(full, _worker(1), _unexpectedState(full, TaskState.Revealing));
    }

    function _refusedTerms(Terms memory terms, bytes32 field) private {
        _refused(
            REQUESTER,
            abi.encodeCall(market.post, (terms)),
            abi.encodeWithSelector(ITasks.MarketInvalidTerms.selector, field)
        );
    }

    function _refusedJoin(TaskId id, address who, bytes memory reason) private {
        _refused(who, abi.encodeCall(market.join, (id, CARD, new bytes32[](0))), reason);
    }
}
