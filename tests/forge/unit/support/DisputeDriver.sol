// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {vm} from "../../support/Vm.sol";
import {TaskDriver} from "./TaskDriver.sol";

/// @notice The ways into the states of a dispute.
abstract contract DisputeDriver is TaskDriver {
    /// @dev Stands for a referee that does not commit.
    bytes32 internal constant SILENT = keccak256("silent");
    /// @dev A state that the honest trace does not have.
    bytes32 internal constant OTHER = keccak256("other");
    /// @dev What the segment really leads to, where the workers are wrong.
    bytes32 internal constant TRUE = keccak256("true");
    /// @dev What a member answers when the data was not served.
    bytes32 internal constant UNSERVED = 0;

    function _challenge(TaskId id, uint32 segment) internal {
        Claim memory claim = _claim();
        bytes32[] memory proof = _proof(SEGMENTS, segment);
        vm.prank(CHALLENGER);
        market.challenge(id, segment, claim, _after(segment), proof);
    }

    function _challengeUnserved(TaskId id, uint32 segment) internal {
        vm.prank(CHALLENGER);
        market.challengeUnserved(id, segment);
    }

    function _serve(TaskId id, uint32 segment) internal {
        Claim memory claim = _claim();
        bytes32[] memory proof = _proof(SEGMENTS, segment);
        vm.prank(STRANGER);
        market.serve(id, segment, claim, _after(segment), proof);
    }

    /// @dev A task in its window, without auditors: all its audits come from challengers.
    function _unaudited(uint8 slots) internal returns (TaskId id) {
        Terms memory terms = _terms(Policy.Audit, slots);
        terms.audits = 0;
        id = _submitted(terms);
        vm.prank(STRANGER);
        market.draw(id);
    }

    /// @dev A task in its window whose segment is challenged.
    function _disputed(uint8 slots, uint32 segment) internal returns (TaskId id) {
        id = _unaudited(slots);
        _challenge(id, segment);
    }

    function _round(TaskId id, uint32 segment) internal view returns (uint256) {
        return market.dispute(id, segment).round;
    }

    function _drawReferees(TaskId id, uint32 segment) internal {
        vm.roll(market.panel(id, segment, _round(id, segment)).drawBlock + 1);
        vm.prank(STRANGER);
        market.drawReferees(id, segment);
    }

    function _referees(TaskId id, uint32 segment) internal view returns (uint256) {
        return market.panel(id, segment, _round(id, segment)).seats;
    }

    function _referee(TaskId id, uint32 segment, uint256 index) internal view returns (address) {
        return market.seat(id, segment, _round(id, segment), index).member;
    }

    function _refereeCommit(TaskId id, uint32 segment, uint256 index, bytes32 answer) internal {
        address member = _referee(id, segment, index);
        vm.prank(member);
        market.refereeCommit(id, segment, index, _answer(id, segment, index, member, answer));
    }

    function _refereeReveal(TaskId id, uint32 segment, uint256 index, bytes32 answer) internal {
        vm.prank(STRANGER);
        market.refereeReveal(id, segment, index, SALT, answer);
    }

    function _resolve(TaskId id, uint32 segment) internal {
        vm.prank(STRANGER);
        market.resolve(id, segment);
    }

    function _passDispute(TaskId id, uint32 segment) internal {
        vm.warp(market.dispute(id, segment).deadline);
    }

    /// @dev Draws a committee, lets each of it answer, and resolves.
    function _rule(TaskId id, uint32 segment, bytes32[] memory answers) internal {
        _hear(id, segment, answers);
        _resolve(id, segment);
    }

    /// @dev Draws a committee and lets each of it answer.
    function _hear(TaskId id, uint32 segment, bytes32[] memory answers) internal {
        _drawReferees(id, segment);
        bool silence = false;
        for (uint256 i = 0; i < answers.length; ++i) {
            if (answers[i] == SILENT) silence = true;
            else _refereeCommit(id, segment, i, answers[i]);
        }
        if (silence) {
            _passDispute(id, segment);
            _resolve(id, segment);
        }
        for (uint256 i = 0; i < answers.length; ++i) {
            if (answers[i] != SILENT) _refereeReveal(id, segment, i, answers[i]);
        }
    }

    function _three(bytes32 a, bytes32 b, bytes32 c) internal pure returns (bytes32[] memory answers) {
        answers = new bytes32[](3);
        (answers[0], answers[1], answers[2]) = (a, b, c);
    }

    function _five(bytes32 a, bytes32 b, bytes32 c, bytes32 d, bytes32 e)
        internal
        pure
        returns (bytes32[] memory answers)
    {
        answers = new bytes32[](5);
        (answers[0], answers[1], answers[2], answers[3], answers[4]) = (a, b, c, d, e);
    }

    function _unexpectedDispute(TaskId id, uint32 segment, DisputeState state)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodeWithSelector(IDisputes.MarketUnexpectedDispute.selector, id, segment, state);
    }

    /// @dev The seat is closed; its member earned and lost what is said, and has its bond free.
    function _assertMember(Seat memory seat, uint256 earned, uint256 lost) internal view {
        vm.assertEq(uint256(seat.state), uint256(SeatState.Closed), "seat");
        _assertCredit(market, seat.member, earned);
        vm.assertEq(market.worker(seat.member).bond, AUDITOR_BOND - lost, "bond");
        vm.assertEq(market.worker(seat.member).bondLocked, 0, "locked bond");
    }

    function _assertFailed(TaskId id) internal view {
        _assertState(market, id, TaskState.Failed);
        vm.assertEq(market.task(id).locked, 0, "locked");
        _assertBalanced(market);
    }
}
