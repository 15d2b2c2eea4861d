// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../../contracts/interfaces/IDisputes.sol";
import {PanelMoves} from "./PanelMoves.sol";
import {Secrets} from "./Secrets.sol";

/// @notice Moves of accusers, accused and referees.
abstract contract DisputeMoves is PanelMoves {
    function _challenge(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayChallenge(t)) return false;
        Secrets.Kind kind = _kindOf[id][t.lead];
        if (kind == Secrets.Kind.Empty) return false;
        uint32 segment = _segmentOf(id, t);
        if (_isTaken(id, segment)) return false;
        bytes32 state = Secrets.stateAfter(id, kind, t.segments, segment);
        bytes32[] memory proof = Secrets.proofAfter(id, kind, t.segments, segment);
        Claim memory claim = _claimOf(id, t, t.lead);
        _do(_anyone(), abi.encodeCall(IDisputes.challenge, (_id(id), segment, claim, state, proof)));
        _watchDispute(id, segment);
        return true;
    }

    function _challengeUnserved(uint256 id, Task memory t) internal returns (bool) {
        if (!_mayChallenge(t)) return false;
        uint32 segment = _segmentOf(id, t);
        if (_isTaken(id, segment)) return false;
        _do(_anyone(), abi.encodeCall(IDisputes.challengeUnserved, (_id(id), segment)));
        _watchDispute(id, segment);
        return true;
    }

    function _serve(uint256 id, Task memory t) internal returns (bool) {
        (bool found, uint32 segment) = _disputeIn(id, t, DisputeState.Unserved);
        Secrets.Kind kind = _kindOf[id][t.lead];
        if (!found || kind == Secrets.Kind.Empty || _now() >= market.dispute(_id(id), segment).deadline) return false;
        bytes32 state = Secrets.stateAfter(id, kind, t.segments, segment);
        bytes32[] memory proof = Secrets.proofAfter(id, kind, t.segments, segment);
        Claim memory claim = _claimOf(id, t, t.lead);
        _do(_anyone(), abi.encodeCall(IDisputes.serve, (_id(id), segment, claim, state, proof)));
        return true;
    }

    function _drawReferees(uint256 id, Task memory t) internal returns (bool) {
        (bool found, uint32 segment) = _disputeIn(id, t, DisputeState.Called);
        if (!found) return false;
        Dispute memory d = market.dispute(_id(id), segment);
        _reach(id, segment, d.round);
        bytes memory call = abi.encodeCall(IDisputes.drawReferees, (_id(id), segment));
        if (_now() >= d.deadline) {
            _demand(_anyone(), call, "drawReferees");
        } else if (!_attempt(_anyone(), call)) {
            // Too few referees are free. Others may come free before they need not be waited for.
            if (_once(3)) _warpTo(d.deadline);
            return false;
        }
        if (market.dispute(_id(id), segment).state == DisputeState.Hearing) _inspectReferees(id, t, segment, d.round);
        return true;
    }

    function _refereeCommit(uint256 id, Task memory t) internal returns (bool) {
        (bool found, uint32 segment) = _disputeIn(id, t, DisputeState.Hearing);
        if (!found) return false;
        Dispute memory d = market.dispute(_id(id), segment);
        if (_now() >= d.deadline) return false;
        uint256 index;
        (found, index) = _seatIn(id, segment, d.round, SeatState.Drawn);
        if (!found) return false;
        bytes32 commitment = _commitAnswer(id, t, segment, d.round, index);
        _do(
            _member(id, segment, d.round, index),
            abi.encodeCall(IDisputes.refereeCommit, (_id(id), segment, index, commitment))
        );
        return true;
    }

    function _refereeReveal(uint256 id, Task memory t) internal returns (bool) {
        (bool found, uint32 segment) = _disputeIn(id, t, DisputeState.Ruling);
        if (!found) return false;
        Dispute memory d = market.dispute(_id(id), segment);
        if (_now() >= d.deadline) return false;
        uint256 index;
        (found, index) = _seatIn(id, segment, d.round, SeatState.Committed);
        if (!found) return false;
        bytes32 salt = Secrets.seatSalt(id, segment, d.round, index);
        bytes32 answer = _answer(id, t, segment, d.round, index);
        _do(_anyone(), abi.encodeCall(IDisputes.refereeReveal, (_id(id), segment, index, salt, answer)));
        return true;
    }

    function _resolve(uint256 id, Task memory t) internal returns (bool) {
        uint256 count = disputed[id].length;
        uint256 first = count == 0 ? 0 : _roll(count);
        for (uint256 i = 0; i < count; ++i) {
            uint32 segment = disputed[id][(first + i) % count];
            Dispute memory d = market.dispute(_id(id), segment);
            if (!_isDue(id, t, segment, d)) continue;
            _demand(_anyone(), abi.encodeCall(IDisputes.resolve, (_id(id), segment)), "resolve");
            return true;
        }
        return false;
    }

    function _isDue(uint256 id, Task memory t, uint32 segment, Dispute memory d) internal view returns (bool) {
        if (!_pends(d.state)) return false;
        if (_ended(t.state)) return true;
        if (d.state == DisputeState.Called) return false;
        if (_now() >= d.deadline) return true;
        Panel memory p = market.panel(_id(id), segment, d.round);
        return d.state == DisputeState.Ruling && p.revealed == p.committed;
    }

    function _mayChallenge(Task memory t) private view returns (bool) {
        bool open = t.state == TaskState.Window || t.state == TaskState.Disputed;
        return open && t.policy == Policy.Audit && _now() < t.deadline;
    }

    /// @dev The segment that is made up every other time.
    function _segmentOf(uint256 id, Task memory t) private returns (uint32) {
        return _once(2) ? Secrets.madeUp(id, t.segments) : uint32(_roll(t.segments));
    }

    function _isTaken(uint256 id, uint32 segment) private view returns (bool) {
        return market.dispute(_id(id), segment).state != DisputeState.None;
    }

    /// @dev Some dispute of a task that has not ended, in `state`.
    function _disputeIn(uint256 id, Task memory t, DisputeState state) internal returns (bool found, uint32 segment) {
        uint256 count = disputed[id].length;
        if (t.state != TaskState.Disputed || count == 0) return (false, 0);
        uint256 first = _roll(count);
        for (uint256 i = 0; i < count; ++i) {
            segment = disputed[id][(first + i) % count];
            if (market.dispute(_id(id), segment).state == state) return (true, segment);
        }
    }

    function _inspectReferees(uint256 id, Task memory t, uint32 segment, uint256 round) private {
        _inspect(id, t, segment, round);
        Dispute memory d = market.dispute(_id(id), segment);
        uint256 seats = market.panel(_id(id), segment, round).seats;
        for (uint256 i = 0; i < seats; ++i) {
            address member = _member(id, segment, round, i);
            _note(member == d.accuser, "an accuser judges");
            _note(_sits(id, OWN_PANEL, 0, member), "an auditor judges");
            _note(d.escalated && _sits(id, segment, round - 1, member), "a referee sits in both committees");
        }
    }

    function _sits(uint256 id, uint32 segment, uint256 round, address member) private view returns (bool) {
        uint256 seats = market.panel(_id(id), segment, round).seats;
        for (uint256 i = 0; i < seats; ++i) {
            if (_member(id, segment, round, i) == member) return true;
        }
        return false;
    }
}
