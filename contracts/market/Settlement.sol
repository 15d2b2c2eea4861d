// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../interfaces/ISettlement.sol";
import {Scoring} from "./Scoring.sol";

/// @title The end of a task
/// @dev Each way to end a task pays the slots, closes the panel, and gives the rest of the lock to
/// the requester. Loops run over at most 32 slots and 15 seats.
abstract contract Settlement is Scoring {
    /// @dev What the end of a task means for its slots.
    enum Ending {
        /// The lead claim holds: its slots are paid, others that answered were wrong.
        Paid,
        /// Nobody is to blame for more than being absent: stakes go back.
        Unpaid,
        /// The lead claim is a fraud: its slots lose their stakes.
        Fraud
    }

    /// @dev What an answer of a member is worth at the end.
    enum Answer {
        Right,
        Wrong,
        Missing,
        Unjudged
    }

    /// @dev Pays the lead claim.
    function _settle(TaskId id, Task storage task, uint16[] memory shares) internal {
        uint256 fees = _closeSeats(id, task, Ending.Paid);
        uint256 paid = _closeSlots(id, task, Ending.Paid, shares);
        uint256 refunded = _conclude(id, task, TaskState.Settled, fees + paid);
        emit ISettlement.TaskSettled(id, task.lead, paid, refunded);
    }

    /// @dev Ends a task without paying for its result.
    /// @param spent what the caller took from the lock already
    function _fail(TaskId id, Task storage task, Failure reason, uint256 spent) internal {
        bool fraud = reason == Failure.Fraud || reason == Failure.Withheld;
        Ending ending = fraud ? Ending.Fraud : Ending.Unpaid;
        spent += _closeSeats(id, task, ending);
        spent += _closeSlots(id, task, ending, new uint16[](0));
        uint256 refunded = _conclude(id, task, TaskState.Failed, spent);
        emit ISettlement.TaskFailed(id, reason, refunded);
    }

    /// @dev Ends a task that never started.
    function _cancel(TaskId id, Task storage task) internal {
        uint256 spent = _returnStakes(id, task);
        uint256 refunded = _conclude(id, task, TaskState.Cancelled, spent);
        emit ISettlement.TaskCancelled(id, refunded);
    }

    /// @dev Stakes at risk in the lead claim.
    function _pot(TaskId id, Task storage task) private view returns (uint256) {
        return _count(_signers(id, task, _answers(task))) * task.stake;
    }

    /// @dev Takes the stakes behind the lead claim. Referees were paid from them; of the rest one stake is
    /// split and what is more is burned: who has a stake of its own in a joint claim must not gain by
    /// spoiling and accusing it.
    /// @return pot what left the task's lock
    function _slashPot(TaskId id, Task storage task, uint256 fees, address finder) internal returns (uint256 pot) {
        pot = _pot(id, task);
        // INVARIANT: pot >= stake * quorum >= the fees of both committees.
        uint256 rest = pot - fees;
        uint256 shared = rest < task.stake ? rest : task.stake;
        _slash(id, task, shared, finder);
        _credit(id, BURN, rest - shared);
    }

    /// @dev The slots that gave the answer that was due: a submission or a commitment while the task
    /// runs, and what was committed must be revealed after that.
    function _answers(Task storage task) internal view returns (uint32) {
        return _blind(task.policy) && task.state != TaskState.Running ? task.revealed : task.answered;
    }

    /// @dev The largest group of equal claims; of equals, the one with the lowest slot.
    function _leadOf(TaskId id, Task storage task) internal view returns (uint256 lead, uint256 votes) {
        uint256 slots = task.slots;
        uint32 answers = _answers(task);
        bytes32[] memory digests = new bytes32[](slots);
        for (uint256 i = 0; i < slots; ++i) {
            if (_has(answers, i)) digests[i] = _slots[id][i].digest;
        }
        for (uint256 i = 0; i < slots; ++i) {
            if (digests[i] == 0) continue;
            uint256 alike = 1;
            for (uint256 j = i + 1; j < slots; ++j) {
                if (digests[j] != digests[i]) continue;
                ++alike;
                digests[j] = 0;
            }
            if (alike > votes) (lead, votes) = (i, alike);
        }
    }

    /// @dev Those of the `answers` that stand behind the lead claim.
    function _signers(TaskId id, Task storage task, uint32 answers) private view returns (uint32 signers) {
        if (task.policy == Policy.Contest) return answers & _bit(task.lead);
        Slot[MAX_SLOTS] storage slots = _slots[id];
        bytes32 lead = slots[task.lead].digest;
        for (uint256 i = 0; answers >> i != 0; ++i) {
            if (_has(answers, i) && slots[i].digest == lead) signers |= _bit(i);
        }
    }

    /// @return spent what left the task's lock
    function _closeSlots(TaskId id, Task storage task, Ending ending, uint16[] memory shares)
        private
        returns (uint256 spent)
    {
        uint32 joined = task.joined;
        uint32 answers = _answers(task);
        uint32 signers = _signers(id, task, answers);
        uint256 stake = task.stake;
        uint256 penalty = stake * _params[task.paramsId].faultBps / BPS;
        bool excused = _excusesAbsence(task, ending);
        // Shares need everybody's word: a majority must not vote the others' parts to itself.
        if (signers != answers) shares = new uint16[](0);
        for (uint256 i = 0; joined >> i != 0; ++i) {
            if (!_has(joined, i)) continue;
            address worker = _slots[id][i].worker;
            uint256 due = stake;
            bool fault = false;
            if (!_has(answers, i)) {
                fault = !excused;
            } else if (_has(signers, i)) {
                if (ending == Ending.Fraud) {
                    // INVARIANT: the stake was handed on by whoever found the fraud.
                    due = 0;
                    _record(id, worker, Record.Failed);
                } else if (ending == Ending.Paid) {
                    due += _share(task, shares, i);
                    _record(id, worker, Record.Settled);
                }
            } else {
                fault = ending == Ending.Paid && task.policy != Policy.Contest;
            }
            if (fault) {
                // Silence and a majority are no proof, so nobody gains by them: the penalty is burned.
                due -= penalty;
                spent += penalty;
                _credit(id, BURN, penalty);
                _record(id, worker, Record.Failed);
            }
            spent += due;
            _credit(id, worker, due);
        }
    }

    /// @dev Slots that work together are not at fault for having no answer if one of them was lost and not
    /// replaced, or if nobody is paid although others had one.
    function _excusesAbsence(Task storage task, Ending ending) private view returns (bool) {
        if (_blind(task.policy)) return false;
        return task.joined != _full(task.slots) || (ending != Ending.Paid && task.answered != 0);
    }

    function _share(Task storage task, uint16[] memory shares, uint256 index) private view returns (uint256) {
        if (task.policy == Policy.Contest) return uint256(task.reward) * task.slots;
        if (shares.length == 0) return task.reward;
        return uint256(task.reward) * task.slots * shares[index] / BPS;
    }

    function _returnStakes(TaskId id, Task storage task) private returns (uint256 spent) {
        uint256 stake = task.stake;
        for (uint256 i = 0; i < task.slots; ++i) {
            if (!_has(task.joined, i)) continue;
            spent += stake;
            _credit(id, _slots[id][i].worker, stake);
        }
    }

    /// @dev Closes the task's own panel: who answered right is paid, the others lose of their bonds.
    /// @return spent what left the task's lock
    function _closeSeats(TaskId id, Task storage task, Ending ending) private returns (uint256 spent) {
        PanelSeats storage own = _ownPanel(id);
        uint256 seats = own.panel.seats;
        uint256 wrong = own.panel.revealed != 0 && _scored(task.policy) ? _outliers(id, task) : 0;
        // A task that fails early leaves no time to reveal: then a commitment is enough.
        bool early = ending != Ending.Paid && (own.panel.revealBy == 0 || block.timestamp < own.panel.revealBy);
        for (uint256 i = 0; i < seats; ++i) {
            SeatState state = own.seats[i].state;
            if (state == SeatState.Closed) continue;
            Answer answer = _judged(id, own.seats[i], early, ending);
            if (wrong >> i & 1 != 0) answer = Answer.Wrong;
            if (answer == Answer.Right) spent += _rewardSeat(id, task, OWN_PANEL, 0, i);
            else if (answer == Answer.Unjudged) _closeSeat(id, OWN_PANEL, 0, i, _bondOf(task), 0);
            else _burnSeat(id, task, OWN_PANEL, 0, i, answer == Answer.Missing);
        }
    }

    /// @dev What an auditor's answer is worth. An evaluator's seat is never in dispute.
    function _judged(TaskId id, Seat storage seat, bool early, Ending ending) private view returns (Answer) {
        if (seat.state == SeatState.Drawn) return Answer.Missing;
        // Who committed and sees that it was wrong must not save its bond by keeping silent.
        if (seat.state == SeatState.Committed) return early ? Answer.Right : Answer.Wrong;
        bytes32 answer = seat.answer;
        Dispute storage d = _disputes[id][seat.segment];
        bool judged = d.state == DisputeState.Rejected || (d.state == DisputeState.Upheld && d.truth != UNSERVED);
        if (judged && answer == d.truth) return Answer.Right;
        // Who was not served could find nothing, whatever others found.
        if (judged && answer == UNSERVED) return d.state == DisputeState.Upheld ? Answer.Right : Answer.Missing;
        if (judged) return Answer.Wrong;
        // Nobody said who was right. Where there was fraud, differing from the workers is likely to be.
        bool differs = d.state != DisputeState.None && answer != seat.opened;
        return differs && ending != Ending.Fraud ? Answer.Unjudged : Answer.Right;
    }

    function _conclude(TaskId id, Task storage task, TaskState state, uint256 spent)
        private
        returns (uint256 refunded)
    {
        // INVARIANT: spent + refunded == locked, so the vault stays solvent and the lock ends at zero.
        refunded = task.locked - spent;
        task.locked = 0;
        task.state = state;
        _credit(id, task.requester, refunded);
    }
}
