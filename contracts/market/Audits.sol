// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../interfaces/IDisputes.sol";
import {Trace} from "../libraries/Trace.sol";
import {Panels} from "./Panels.sol";

/// @title Drawn audits and evaluations
abstract contract Audits is Panels {
    /// @inheritdoc IDisputes
    function draw(TaskId id) external {
        Task storage t = _in(id, TaskState.Submitted);
        if (t.audits == 0) return _startWindow(id, t, new bytes32[](0));
        bytes32 seed = _seed(id, t, OWN_PANEL, 0);
        if (seed == 0) return;

        bool audit = t.policy == Policy.Audit;
        uint256 wanted = audit ? _auditable(t.segments, t.audits) : t.audits;
        Drawn memory drawn = _pick(t, _ownPanel(id).panel, seed, wanted, _parties(id, t, wanted));
        uint256 count = drawn.count;
        // Bonds may come free in time; after that nobody is to blame.
        if ((drawn.busy || count < t.minAudits) && block.timestamp < t.deadline) {
            return _await(id, OWN_PANEL, 0, seed, count, drawn.busy ? wanted : t.minAudits);
        }
        if (count < t.minAudits) return _fail(id, t, Failure.Unaudited, 0);
        if (count < t.audits) emit SeatsUnassigned(id, OWN_PANEL, 0, t.audits - count);
        if (count == 0) return _startWindow(id, t, new bytes32[](0));

        // INVARIANT: the hash alone says what is audited, whoever is there to do it.
        uint32[] memory segments = audit ? _segments(seed, t.segments, wanted) : new uint32[](wanted);
        for (uint256 i = 0; i < wanted; ++i) {
            if (drawn.members[i] != address(0)) _place(id, OWN_PANEL, 0, drawn.members[i], segments[i]);
        }
        t.state = TaskState.Auditing;
        t.deadline = _after(t.auditFor);
        emit AuditStarted(id, count, t.deadline);
    }

    /// @inheritdoc IDisputes
    function auditCommit(TaskId id, uint256 index, bytes32 commitment) external {
        Task storage t = _in(id, TaskState.Auditing);
        _before(id, t.deadline);
        bool complete = _commitSeat(id, OWN_PANEL, 0, index, commitment);
        emit AuditCommitted(id, index, commitment);
        if (complete) _endAuditing(id, t);
    }

    /// @inheritdoc IDisputes
    function open(TaskId id, Claim calldata claim, bytes32[] calldata states, bytes32[][] calldata proofs)
        external
    {
        Task storage t = _tasks[id];
        if (t.state == TaskState.Opening) {
            _before(id, t.deadline);
        } else {
            if (t.state != TaskState.Auditing) revert MarketUnexpectedState(id, t.state);
            if (t.policy != Policy.Audit) revert MarketWrongPolicy(id, t.policy);
            // Auditors that did not commit in time hold up nobody.
            _from(id, t.deadline);
        }
        _checkClaim(id, t, claim);
        PanelSeats storage own = _ownPanel(id);
        uint256 seats = own.panel.seats;
        if (states.length != seats) revert MarketWrongLength(states.length, seats);
        if (proofs.length != seats) revert MarketWrongLength(proofs.length, seats);
        for (uint256 i = 0; i < seats; ++i) {
            _checkState(id, t, claim, own.seats[i].segment, states[i], proofs[i]);
            own.seats[i].opened = states[i];
        }
        _startWindow(id, t, states);
    }

    /// @inheritdoc IDisputes
    function auditReveal(TaskId id, uint256 index, bytes32 salt, bytes32 answer) external {
        Task storage t = _tasks[id];
        if (t.policy != Policy.Audit) revert MarketWrongPolicy(id, t.policy);
        if (t.state != TaskState.Window && t.state != TaskState.Disputed) revert MarketUnexpectedState(id, t.state);
        _before(id, _ownPanel(id).panel.revealBy);
        _revealSeat(id, OWN_PANEL, 0, index, salt, answer);
        emit AuditRevealed(id, index, answer);

        Seat storage s = _ownPanel(id).seats[index];
        if (answer != s.opened) _accuse(id, t, index, s);
    }

    /// @inheritdoc IDisputes
    function scoreReveal(TaskId id, uint256 index, bytes32 salt, uint32[] calldata scores_) external {
        Task storage t = _in(id, TaskState.Window);
        if (t.policy == Policy.Audit) revert MarketWrongPolicy(id, t.policy);
        _before(id, t.deadline);
        uint256 expected = t.policy == Policy.Contest ? t.slots : 1;
        if (scores_.length != expected) revert MarketWrongLength(scores_.length, expected);
        _revealSeat(id, OWN_PANEL, 0, index, salt, keccak256(abi.encode(scores_)));
        _scores[id][index] = scores_;
        emit ScoresRevealed(id, index, scores_);
    }

    /// @dev An auditor found something else than the workers.
    function _accuse(TaskId id, Task storage t, uint256 index, Seat storage s) internal virtual;

    function _checkClaim(TaskId id, Task storage t, Claim calldata claim) internal view {
        bytes32 digest = _claimDigest(claim);
        if (digest != _slots[id][t.lead].digest) revert MarketWrongClaim(id, digest);
    }

    /// @dev Reverts unless the claim's trace has `state` after `segment`.
    function _checkState(
        TaskId id,
        Task storage t,
        Claim calldata claim,
        uint256 segment,
        bytes32 state,
        bytes32[] calldata proof
    ) internal view {
        // As a state, the answer of who could not fetch the data would hide that.
        if (state == UNSERVED || !Trace.verify(claim.root, t.segments, segment + 1, state, proof)) {
            revert MarketWrongProof(id, segment);
        }
    }

    /// @dev `count` segments of which no two are neighbours, each segment being as likely as any
    /// other. Segments stand in a ring: the first is drawn freely; the others come from the ring
    /// without the first and its neighbours, where leaving a gap after each is the same as drawing
    /// distinct places from a line that is shorter by the gaps.
    function _segments(bytes32 seed, uint256 length, uint256 count) private pure returns (uint32[] memory drawn) {
        drawn = new uint32[](count);
        uint256 first = uint256(keccak256(abi.encode(seed, "first"))) % length;
        drawn[0] = uint32(first);
        if (count == 1) return drawn;
        uint256[] memory places = new uint256[](count - 1);
        // count <= length / 2, so at least count - 1 places remain.
        uint256 line = length - 3 - (count - 2);
        for (uint256 i = 0; i < count - 1; ++i) {
            uint256 place = uint256(keccak256(abi.encode(seed, "next", i))) % (line - i);
            // Steps over the places taken before, which are kept in ascending order.
            uint256 rank = 0;
            for (; rank < i && places[rank] <= place; ++rank) ++place;
            for (uint256 j = i; j > rank; --j) places[j] = places[j - 1];
            places[rank] = place;
        }
        for (uint256 i = 0; i < count - 1; ++i) {
            drawn[i + 1] = uint32((first + 2 + places[i] + i) % length);
        }
    }
}
