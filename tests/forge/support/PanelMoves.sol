// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {Secrets} from "./Secrets.sol";
import {TaskMoves} from "./TaskMoves.sol";

/// @notice Draws, and what auditors, evaluators and workers do after them.
abstract contract PanelMoves is TaskMoves {
    function _draw(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Submitted) return false;
        _reach(id, OWN_PANEL, 0);
        bytes memory call = abi.encodeCall(IDisputes.draw, (_id(id)));
        if (_now() >= t.deadline) {
            _demand(_anyone(), call, "draw");
        } else if (!_attempt(_anyone(), call)) {
            // Too few auditors are free. Others may come free before they need not be waited for.
            if (_once(3)) _warpTo(t.deadline);
            return false;
        }
        if (_task(id).state == TaskState.Auditing) _inspect(id, t, OWN_PANEL, 0);
        return true;
    }

    function _auditCommit(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Auditing || _now() >= t.deadline) return false;
        (bool found, uint256 index) = _seatIn(id, OWN_PANEL, 0, SeatState.Drawn);
        if (!found) return false;
        bytes32 commitment = _commitAnswer(id, t, OWN_PANEL, 0, index);
        _do(_member(id, OWN_PANEL, 0, index), abi.encodeCall(IDisputes.auditCommit, (_id(id), index, commitment)));
        return true;
    }

    function _open(uint256 id, Task memory t) internal returns (bool) {
        bool late = t.state == TaskState.Auditing && t.policy == Policy.Audit && _now() >= t.deadline;
        if (!late && (t.state != TaskState.Opening || _now() >= t.deadline)) return false;
        Secrets.Kind kind = _kindOf[id][t.lead];
        if (kind == Secrets.Kind.Empty) return false;
        uint256 seats = market.panel(_id(id), OWN_PANEL, 0).seats;
        bytes32[] memory states = new bytes32[](seats);
        bytes32[][] memory proofs = new bytes32[][](seats);
        for (uint256 i = 0; i < seats; ++i) {
            uint256 segment = market.seat(_id(id), OWN_PANEL, 0, i).segment;
            states[i] = Secrets.stateAfter(id, kind, t.segments, segment);
            proofs[i] = Secrets.proofAfter(id, kind, t.segments, segment);
        }
        _do(_anyone(), abi.encodeCall(IDisputes.open, (_id(id), _claimOf(id, t, t.lead), states, proofs)));
        return true;
    }

    function _auditReveal(uint256 id, Task memory t) internal returns (bool) {
        bool open = t.state == TaskState.Window || t.state == TaskState.Disputed;
        if (!open || t.policy != Policy.Audit || _now() >= _revealBy(id)) return false;
        (bool found, uint256 index) = _seatIn(id, OWN_PANEL, 0, SeatState.Committed);
        if (!found) return false;
        bytes32 salt = Secrets.seatSalt(id, OWN_PANEL, 0, index);
        bytes32 answer = _answer(id, t, OWN_PANEL, 0, index);
        _do(_anyone(), abi.encodeCall(IDisputes.auditReveal, (_id(id), index, salt, answer)));
        Seat memory s = market.seat(_id(id), OWN_PANEL, 0, index);
        if (answer != s.opened) _watchDispute(id, s.segment);
        return true;
    }

    function _scoreReveal(uint256 id, Task memory t) internal returns (bool) {
        if (t.state != TaskState.Window || t.policy == Policy.Audit || _now() >= t.deadline) return false;
        (bool found, uint256 index) = _seatIn(id, OWN_PANEL, 0, SeatState.Committed);
        if (!found) return false;
        bytes32 salt = Secrets.seatSalt(id, OWN_PANEL, 0, index);
        uint32[] memory row = _scores(id, t, index, salt);
        _do(_anyone(), abi.encodeCall(IDisputes.scoreReveal, (_id(id), index, salt, row)));
        return true;
    }

    // Panels

    /// @dev Lets blocks pass until the panel can be drawn, and now and then so many that it cannot.
    function _reach(uint256 id, uint32 segment, uint256 round) internal {
        uint256 drawBlock = market.panel(_id(id), segment, round).drawBlock;
        if (_height <= drawBlock) _passBlocks(drawBlock + 1 - _height + (_once(16) ? 300 : _roll(3)));
    }

    function _revealBy(uint256 id) internal view returns (uint256) {
        return market.panel(_id(id), OWN_PANEL, 0).revealBy;
    }

    function _member(uint256 id, uint32 segment, uint256 round, uint256 index) internal view returns (address) {
        return market.seat(_id(id), segment, round, index).member;
    }

    /// @dev Some seat of the panel in `state`.
    function _seatIn(uint256 id, uint32 segment, uint256 round, SeatState state)
        internal
        returns (bool found, uint256 index)
    {
        uint256 seats = market.panel(_id(id), segment, round).seats;
        if (seats == 0) return (false, 0);
        uint256 first = _roll(seats);
        for (uint256 i = 0; i < seats; ++i) {
            index = (first + i) % seats;
            if (market.seat(_id(id), segment, round, index).state == state) return (true, index);
        }
    }

    /// @dev Chooses what the seat answers and keeps it for the reveal.
    function _commitAnswer(uint256 id, Task memory t, uint32 segment, uint256 round, uint256 index)
        internal
        returns (bytes32)
    {
        _answerOf[id][segment][round][index] = _sketchAnswer(id, segment);
        return market.answerCommitment(
            _id(id),
            segment,
            index,
            _member(id, segment, round, index),
            Secrets.seatSalt(id, segment, round, index),
            _answer(id, t, segment, round, index)
        );
    }

    function _answer(uint256 id, Task memory t, uint32 segment, uint256 round, uint256 index)
        internal
        view
        returns (bytes32)
    {
        bytes32 salt = Secrets.seatSalt(id, segment, round, index);
        if (t.policy != Policy.Audit) return keccak256(abi.encode(_scores(id, t, index, salt)));
        uint256 duty = market.seat(_id(id), segment, round, index).segment;
        bytes32 claimed = Secrets.stateAfter(id, _kindOf[id][t.lead], t.segments, duty);
        return Secrets.answer(id, _answerOf[id][segment][round][index], Secrets.truthAfter(id, duty), claimed, salt);
    }

    function _scores(uint256 id, Task memory t, uint256 index, bytes32 salt) private view returns (uint32[] memory) {
        uint256 entries = t.policy == Policy.Contest ? t.slots : 1;
        return Secrets.scores(id, _answerOf[id][OWN_PANEL][0][index], entries, salt);
    }

    /// @dev Who was drawn may sit: rules A2, A3, A4.
    function _inspect(uint256 id, Task memory t, uint32 segment, uint256 round) internal {
        Panel memory p = market.panel(_id(id), segment, round);
        for (uint256 i = 0; i < p.seats; ++i) {
            Seat memory s = market.seat(_id(id), segment, round, i);
            _note(s.member == t.requester, "the requester sits on a panel of its task");
            for (uint256 j = 0; j < t.slots; ++j) {
                _note(_has(t.joined, j) && _holder(id, j) == s.member, "a worker sits on a panel of its task");
            }
            _note(market.worker(s.member).since >= p.calledAt, "a member came after the call");
            for (uint256 j = 0; j < i; ++j) {
                Seat memory other = market.seat(_id(id), segment, round, j);
                _note(other.member == s.member, "a member sits twice");
                if (segment != OWN_PANEL || t.policy != Policy.Audit) continue;
                uint32 gap = s.segment > other.segment ? s.segment - other.segment : other.segment - s.segment;
                _note(gap < 2, "drawn segments are neighbours");
            }
        }
    }
}
