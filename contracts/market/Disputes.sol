// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {Audits} from "./Audits.sol";

/// @title Challenges and referees
/// @dev A dispute is about one segment. Its money is apart from the task's lock: a challenger's bond
/// in the dispute, the bonds of seats with the members.
abstract contract Disputes is Audits {
    using SafeCast for uint256;

    /// @inheritdoc IDisputes
    function challenge(
        TaskId id,
        uint32 segment,
        Claim calldata claim,
        bytes32 state,
        bytes32[] calldata proof
    ) external {
        Task storage t = _challengeable(id, segment);
        _checkClaim(id, t, claim);
        _checkState(id, t, claim, segment, state, proof);
        Dispute storage d = _begin(id, t, segment, msg.sender, 0, _takeBond(t));
        d.claimed = state;
        emit SegmentChallenged(id, segment, msg.sender, 0, d.bond, state, 0);
        _callReferees(id, t, segment, d);
    }

    /// @inheritdoc IDisputes
    function challengeUnserved(TaskId id, uint32 segment) external {
        Task storage t = _challengeable(id, segment);
        Dispute storage d = _begin(id, t, segment, msg.sender, 0, _takeBond(t));
        d.state = DisputeState.Unserved;
        d.unserved = true;
        d.deadline = _after(t.answerFor);
        emit SegmentChallenged(id, segment, msg.sender, 0, d.bond, 0, d.deadline);
    }

    /// @inheritdoc IDisputes
    function serve(TaskId id, uint32 segment, Claim calldata claim, bytes32 state, bytes32[] calldata proof)
        external
    {
        (Task storage t, Dispute storage d) = _at(id, segment, DisputeState.Unserved);
        _before(id, d.deadline);
        _checkClaim(id, t, claim);
        _checkState(id, t, claim, segment, state, proof);
        d.claimed = state;
        emit SegmentServed(id, segment, state);
        _callReferees(id, t, segment, d);
    }

    /// @inheritdoc IDisputes
    function drawReferees(TaskId id, uint32 segment) external {
        (Task storage t, Dispute storage d) = _at(id, segment, DisputeState.Called);
        uint256 round = d.round;
        bytes32 seed = _seed(id, t, segment, round);
        if (seed == 0) return;

        uint256 wanted = _committee(t, d);
        Excluded memory excluded = _partial(id, t, segment, d);
        Drawn memory drawn = _pick(t, _panels[id][segment][round].panel, seed, wanted, excluded);
        bool enough = drawn.count * 2 > wanted;
        if ((drawn.busy || !enough) && block.timestamp < d.deadline) {
            return _await(id, segment, round, seed, drawn.count, drawn.busy ? wanted : wanted / 2 + 1);
        }
        if (drawn.count < wanted) emit SeatsUnassigned(id, segment, round, wanted - drawn.count);
        if (!enough) return _dismiss(id, t, segment, d);

        for (uint256 i = 0; i < wanted; ++i) {
            if (drawn.members[i] != address(0)) _place(id, segment, round, drawn.members[i], segment);
        }
        d.state = DisputeState.Hearing;
        d.deadline = _after(t.auditFor);
        emit HearingStarted(id, segment, round, drawn.count, d.deadline);
    }

    /// @inheritdoc IDisputes
    function refereeCommit(TaskId id, uint32 segment, uint256 index, bytes32 commitment) external {
        (Task storage t, Dispute storage d) = _at(id, segment, DisputeState.Hearing);
        _before(id, d.deadline);
        bool complete = _commitSeat(id, segment, d.round, index, commitment);
        emit RefereeCommitted(id, segment, d.round, index, commitment);
        if (complete) _startRuling(id, t, segment, d);
    }

    /// @inheritdoc IDisputes
    function refereeReveal(TaskId id, uint32 segment, uint256 index, bytes32 salt, bytes32 answer) external {
        (, Dispute storage d) = _at(id, segment, DisputeState.Ruling);
        _before(id, d.deadline);
        _revealSeat(id, segment, d.round, index, salt, answer);
        emit RefereeRevealed(id, segment, d.round, index, answer);
    }

    /// @inheritdoc IDisputes
    function resolve(TaskId id, uint32 segment) external {
        Task storage t = _tasks[id];
        Dispute storage d = _disputes[id][segment];
        DisputeState state = d.state;
        bool live = state == DisputeState.Unserved || state == DisputeState.Called
            || state == DisputeState.Hearing || state == DisputeState.Ruling;
        if (!live) revert MarketUnexpectedDispute(id, segment, state);
        if (t.state != TaskState.Disputed) return _void(id, t, segment, d);
        // A called committee waits for nothing but `drawReferees`, which anyone may call.
        if (state == DisputeState.Called) revert MarketUnexpectedDispute(id, segment, state);
        Panel storage p = _panels[id][segment][d.round].panel;
        if (state != DisputeState.Ruling || p.revealed != p.committed) _from(id, d.deadline);
        if (state == DisputeState.Unserved) _uphold(id, t, segment, d, Failure.Withheld, 0);
        else if (state == DisputeState.Hearing) _startRuling(id, t, segment, d);
        else _rule(id, t, segment, d);
    }

    function _accuse(TaskId id, Task storage t, uint256 index, Seat storage s) internal override {
        uint32 segment = s.segment;
        // Where the segment is in dispute already, that verdict also judges this auditor.
        if (_disputes[id][segment].state != DisputeState.None) return;
        Dispute storage d = _begin(id, t, segment, s.member, index + 1, 0);
        d.claimed = s.opened;
        emit SegmentChallenged(id, segment, s.member, index + 1, 0, s.opened, 0);
        _callReferees(id, t, segment, d);
    }

    /// @dev Who must not judge a dispute: the task's parties and auditors, the accuser, and who sat before.
    function _partial(TaskId id, Task storage t, uint32 segment, Dispute storage d)
        private
        view
        returns (Excluded memory excluded)
    {
        excluded = _parties(id, t, 3 * MAX_SEATS + 1);
        _exclude(excluded, d.accuser);
        _excludeSeats(excluded, _ownPanel(id));
        if (d.escalated) _excludeSeats(excluded, _panels[id][segment][d.round - 1]);
    }

    function _challengeable(TaskId id, uint32 segment) private view returns (Task storage t) {
        t = _tasks[id];
        if (t.policy != Policy.Audit) revert MarketWrongPolicy(id, t.policy);
        if (t.state != TaskState.Window && t.state != TaskState.Disputed) revert MarketUnexpectedState(id, t.state);
        _before(id, t.deadline);
        if (segment >= t.segments) revert MarketNoSuchSegment(id, segment);
        DisputeState state = _disputes[id][segment].state;
        if (state != DisputeState.None) revert MarketUnexpectedDispute(id, segment, state);
    }

    /// @dev A dispute in `state` of a task that has not ended.
    function _at(TaskId id, uint32 segment, DisputeState state)
        private
        view
        returns (Task storage t, Dispute storage d)
    {
        t = _in(id, TaskState.Disputed);
        d = _disputes[id][segment];
        if (d.state != state) revert MarketUnexpectedDispute(id, segment, d.state);
    }

    function _takeBond(Task storage t) private returns (uint256 bond) {
        bond = _bondOf(t);
        _debit(msg.sender, bond);
    }

    function _begin(TaskId id, Task storage t, uint32 segment, address accuser, uint256 auditSeat, uint256 bond)
        private
        returns (Dispute storage d)
    {
        d = _disputes[id][segment];
        d.accuser = accuser;
        d.auditSeat = uint8(auditSeat);
        d.bond = bond.toUint96();
        if (_ownPanel(id).panel.disputes++ == 0) t.state = TaskState.Disputed;
    }

    function _callReferees(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        d.state = DisputeState.Called;
        d.deadline = _dismissAt(id, t);
        uint256 round = ++d.round;
        Panel storage p = _call(id, t, segment, round);
        emit RefereesCalled(id, segment, round, p.drawBlock, p.pool, p.calledAt, d.deadline);
    }

    /// @dev By when all disputes that began before the window's end can have freed their referees.
    function _dismissAt(TaskId id, Task storage t) private view returns (uint40) {
        uint256 last = _ownPanel(id).panel.revealBy;
        if (t.deadline > last) last = t.deadline;
        if (block.timestamp > last) last = block.timestamp;
        return (last + t.answerFor + 2 * (uint256(t.auditFor) + t.answerFor)).toUint40();
    }

    function _startRuling(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        d.state = DisputeState.Ruling;
        d.deadline = _after(t.answerFor);
        emit RulingStarted(id, segment, d.round, d.deadline);
    }

    function _committee(Task storage t, Dispute storage d) private view returns (uint256) {
        Params storage p = _params[t.paramsId];
        return d.escalated ? p.escalation : p.referees;
    }

    /// @dev Decides by the majority of the whole committee, whoever of it answered.
    function _rule(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        (bytes32 truth, uint256 votes) = _majority(_panels[id][segment][d.round]);
        if (votes * 2 > _committee(t, d)) {
            if (truth == d.claimed) return _reject(id, t, segment, d);
            return _uphold(id, t, segment, d, Failure.Fraud, truth);
        }
        if (!d.escalated) {
            d.escalated = true;
            return _callReferees(id, t, segment, d);
        }
        _giveUp(id, t, segment, d);
    }

    /// @dev Nobody can tell who is right: everyone is refunded.
    function _giveUp(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        _release(id, t, segment, d, true);
        _end(id, t, segment, d, DisputeState.Inconclusive, 0);
        _refundBond(id, d);
        _fail(id, t, Failure.Inconclusive, 0);
    }

    /// @dev The workers are guilty: their stakes pay the referees and the accuser.
    function _uphold(
        TaskId id,
        Task storage t,
        uint32 segment,
        Dispute storage d,
        Failure reason,
        bytes32 truth
    ) private {
        uint256 fees = _judge(id, t, segment, d, truth);
        uint256 pot = _slashPot(id, t, fees, _finder(id, segment, d, truth));
        _end(id, t, segment, d, DisputeState.Upheld, truth);
        _refundBond(id, d);
        _fail(id, t, reason, pot);
    }

    /// @dev Who found the fraud. An auditor that answered blind what is true comes before any accuser, who
    /// may have copied it. An accusing auditor that answered neither what the workers did nor what is true
    /// was guessing, and guessing is not to pay.
    function _finder(TaskId id, uint32 segment, Dispute storage d, bytes32 truth) private view returns (address) {
        if (truth == UNSERVED) return d.accuser;
        PanelSeats storage own = _ownPanel(id);
        for (uint256 i = 0; i < own.panel.seats; ++i) {
            Seat storage s = own.seats[i];
            if (s.segment != segment || s.state != SeatState.Revealed) continue;
            return s.answer == truth ? s.member : d.auditSeat == 0 ? d.accuser : address(0);
        }
        return d.accuser;
    }

    /// @dev The accuser is wrong: its bond pays the referees and the accused.
    function _reject(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        uint256 bond = _bondOf(t);
        // INVARIANT: bond >= the fees of both committees.
        uint256 fees = _judge(id, t, segment, d, d.claimed);
        // Who was not served could say nothing else, though others were: it pays the referees and for a
        // fault, and nobody earns by starving it.
        bool starved = d.unserved;
        if (d.auditSeat != 0) starved = _ownPanel(id).seats[d.auditSeat - 1].answer == UNSERVED;
        uint256 lost = bond;
        if (starved) {
            lost = fees + bond * _params[t.paramsId].faultBps / BPS;
            if (lost > bond) lost = bond;
            _credit(id, BURN, lost - fees);
        } else {
            _slash(id, t, bond - fees, _slots[id][t.lead].worker);
        }
        if (d.auditSeat == 0) {
            d.bond = uint96(bond - lost);
            _refundBond(id, d);
        } else {
            _closeSeat(id, OWN_PANEL, 0, d.auditSeat - 1, bond, lost);
            _record(id, d.accuser, Record.AuditWrong);
        }
        _end(id, t, segment, d, DisputeState.Rejected, d.claimed);
    }

    /// @dev Too few referees to decide. A challenger gets its bond back, and the task goes on. What a drawn
    /// auditor contests is not paid for unjudged, or keeping the referees busy would pay for a cheat.
    function _dismiss(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        if (_contested(id, segment, d.claimed)) return _giveUp(id, t, segment, d);
        _release(id, t, segment, d, true);
        _end(id, t, segment, d, DisputeState.Dismissed, 0);
        _refundBond(id, d);
    }

    /// @dev Whether an auditor of the segment found something else than the workers.
    function _contested(TaskId id, uint32 segment, bytes32 claimed) private view returns (bool) {
        PanelSeats storage own = _ownPanel(id);
        for (uint256 i = 0; i < own.panel.seats; ++i) {
            Seat storage s = own.seats[i];
            if (s.segment == segment && s.state == SeatState.Revealed && s.answer != claimed) return true;
        }
        return false;
    }

    /// @dev The task has ended: there is nothing left to decide.
    function _void(TaskId id, Task storage t, uint32 segment, Dispute storage d) private {
        _release(id, t, segment, d, false);
        _end(id, t, segment, d, DisputeState.Void, 0);
        _refundBond(id, d);
    }

    function _end(
        TaskId id,
        Task storage t,
        uint32 segment,
        Dispute storage d,
        DisputeState outcome,
        bytes32 truth
    ) private {
        d.state = outcome;
        d.truth = truth;
        if (--_ownPanel(id).panel.disputes == 0 && t.state == TaskState.Disputed) t.state = TaskState.Window;
        emit DisputeResolved(id, segment, outcome, truth);
    }

    function _refundBond(TaskId id, Dispute storage d) private {
        uint256 bond = d.bond;
        d.bond = 0;
        _credit(id, d.accuser, bond);
    }

    /// @dev Pays the referees that answered `truth`; the others lose of their bonds.
    /// @return fees what the losing side owes the referees
    function _judge(TaskId id, Task storage t, uint32 segment, Dispute storage d, bytes32 truth)
        private
        returns (uint256 fees)
    {
        for (uint256 round = 1; round <= d.round; ++round) {
            PanelSeats storage ps = _panels[id][segment][round];
            for (uint256 i = 0; i < ps.panel.seats; ++i) {
                Seat storage s = ps.seats[i];
                bool revealed = s.state == SeatState.Revealed;
                // Who was not served says so at the price of silence. Who committed must reveal.
                bool missing = revealed ? s.answer == UNSERVED : s.state == SeatState.Drawn;
                if (revealed && s.answer == truth) fees += _rewardSeat(id, t, segment, round, i);
                else _burnSeat(id, t, segment, round, i, missing);
            }
        }
    }

    /// @dev Frees the referees without a verdict; silence costs them if an answer was due.
    function _release(TaskId id, Task storage t, uint32 segment, Dispute storage d, bool due) private {
        uint256 bond = _bondOf(t);
        for (uint256 round = 1; round <= d.round; ++round) {
            PanelSeats storage ps = _panels[id][segment][round];
            for (uint256 i = 0; i < ps.panel.seats; ++i) {
                SeatState state = ps.seats[i].state;
                if (!due || state == SeatState.Revealed) _closeSeat(id, segment, round, i, bond, 0);
                else _burnSeat(id, t, segment, round, i, state == SeatState.Drawn);
            }
        }
    }

    /// @dev The most frequent revealed answer.
    function _majority(PanelSeats storage ps) private view returns (bytes32 truth, uint256 votes) {
        uint256 seats = ps.panel.seats;
        for (uint256 i = 0; i < seats; ++i) {
            if (ps.seats[i].state != SeatState.Revealed) continue;
            bytes32 answer = ps.seats[i].answer;
            uint256 alike = 0;
            for (uint256 j = i; j < seats; ++j) {
                if (ps.seats[j].state == SeatState.Revealed && ps.seats[j].answer == answer) ++alike;
            }
            if (alike > votes) (truth, votes) = (answer, alike);
        }
    }
}
