// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Cast} from "./Cast.sol";
import {Secrets} from "./Secrets.sol";

/// @notice Which tasks and disputes there are, and how they were last seen.
/// @dev Every step ends with a look at all that has not ended: what changed must have been allowed to.
abstract contract Book is Cast {
    struct Sight {
        TaskState state;
        uint32 answered;
        uint32 revealed;
        bytes32 terms;
        uint256 bond;
    }

    uint32 internal constant OWN_PANEL = type(uint32).max;

    /// @notice Tasks that have not ended, or have open disputes.
    uint256[] internal live;
    /// @notice Tasks that will never change again.
    uint256[] internal closed;
    mapping(uint256 id => bytes32) internal _lastWord;
    mapping(uint256 id => Sight) internal _sights;
    /// @notice Segments of a task that were ever in dispute.
    mapping(uint256 id => uint32[]) internal disputed;
    mapping(uint256 id => mapping(uint32 segment => DisputeState)) internal _disputeSights;
    mapping(uint256 id => mapping(uint256 slot => Secrets.Kind)) internal _kindOf;
    mapping(uint256 id => mapping(uint32 segment => mapping(uint256 round => mapping(uint256 seat => Secrets.Answer))))
        internal _answerOf;

    /// @notice Ends that were seen.
    mapping(Policy policy => mapping(TaskState state => uint256)) public ends;
    mapping(DisputeState state => uint256) public verdicts;

    function liveTasks() external view returns (uint256[] memory) {
        return live;
    }

    function disputedSegments(uint256 id) external view returns (uint32[] memory) {
        return disputed[id];
    }

    function _id(uint256 id) internal pure returns (TaskId) {
        return TaskId.wrap(id);
    }

    function _task(uint256 id) internal view returns (Task memory) {
        return market.task(_id(id));
    }

    function _ended(TaskState state) internal pure returns (bool) {
        return state >= TaskState.Settled;
    }

    /// @dev A dispute that waits for something.
    function _pends(DisputeState state) internal pure returns (bool) {
        return state >= DisputeState.Unserved && state <= DisputeState.Ruling;
    }

    function _watch(uint256 id) internal {
        live.push(id);
        Sight storage s = _sights[id];
        s.state = TaskState.Open;
        s.terms = _termsOf(_task(id));
        s.bond = market.bondOf(_id(id));
    }

    function _watchDispute(uint256 id, uint32 segment) internal {
        uint32[] storage segments = disputed[id];
        for (uint256 i = 0; i < segments.length; ++i) {
            if (segments[i] == segment) return;
        }
        segments.push(segment);
    }

    function _look() internal {
        for (uint256 i = live.length; i > 0; --i) {
            uint256 id = live[i - 1];
            Task memory t = _task(id);
            _lookAt(id, t);
            bool pending = _lookAtDisputes(id);
            if (!_ended(t.state) || pending) continue;
            _lastWord[id] = keccak256(abi.encode(_task(id)));
            closed.push(id);
            live[i - 1] = live[live.length - 1];
            live.pop();
        }
    }

    /// @dev Whatever came later, a closed task is as it was.
    function _lookBack() internal {
        for (uint256 i = 0; i < closed.length; ++i) {
            uint256 id = closed[i];
            _note(keccak256(abi.encode(_task(id))) != _lastWord[id], "an ended task changed");
            _note(market.bondOf(_id(id)) != _sights[id].bond, "the parameters of a task changed");
            for (uint256 j = 0; j < disputed[id].length; ++j) {
                _note(market.dispute(_id(id), disputed[id][j]).bond != 0, "a bond stays in an ended dispute");
            }
        }
    }

    /// @dev Overwrites what may change in `t`.
    function _lookAt(uint256 id, Task memory t) private {
        Sight storage s = _sights[id];
        if (t.state != s.state) {
            _note(!_mayFollow(t.policy, s.state, t.state), "a task changed its state against the diagram");
            s.state = t.state;
            if (_ended(t.state)) ++ends[t.policy][t.state];
        }
        _note(_ended(t.state) && t.locked != 0, "an ended task holds money");
        _note(t.joined >> t.slots != 0, "more slots than the task has");
        _note(t.answered & ~t.joined != 0, "an answer of an empty slot");
        _note(t.revealed & ~t.answered != 0, "a reveal without a commitment");
        _note(s.answered & ~t.answered != 0 || s.revealed & ~t.revealed != 0, "an answer was taken back");
        (s.answered, s.revealed) = (t.answered, t.revealed);
        _note(_termsOf(t) != s.terms, "the terms of a task changed");
    }

    function _lookAtDisputes(uint256 id) private returns (bool pending) {
        uint256 open = 0;
        for (uint256 i = 0; i < disputed[id].length; ++i) {
            uint32 segment = disputed[id][i];
            DisputeState state = market.dispute(_id(id), segment).state;
            DisputeState before = _disputeSights[id][segment];
            if (_pends(state)) ++open;
            if (state == before) continue;
            _note(!_mayFollow(before, state), "a dispute changed its state against the rules");
            _disputeSights[id][segment] = state;
            if (!_pends(state)) ++verdicts[state];
        }
        TaskState task = _sights[id].state;
        _note(market.panel(_id(id), OWN_PANEL, 0).disputes != open, "open disputes are miscounted");
        _note(!_ended(task) && (task == TaskState.Disputed) != (open != 0), "disputed without a dispute");
        return open != 0;
    }

    function _termsOf(Task memory t) private pure returns (bytes32 digest) {
        (uint96 locked, uint40 deadline, TaskState state, uint8 lead) = (t.locked, t.deadline, t.state, t.lead);
        (uint32 joined, uint32 answered, uint32 revealed) = (t.joined, t.answered, t.revealed);
        (t.locked, t.deadline, t.state, t.lead) = (0, 0, TaskState.None, 0);
        (t.joined, t.answered, t.revealed) = (0, 0, 0);
        digest = keccak256(abi.encode(t));
        (t.locked, t.deadline, t.state, t.lead) = (locked, deadline, state, lead);
        (t.joined, t.answered, t.revealed) = (joined, answered, revealed);
    }

    /// @dev The state diagram of the protocol.
    function _mayFollow(Policy policy, TaskState from, TaskState to)
        private
        pure
        returns (bool)
    {
        bool audit = policy == Policy.Audit;
        bool contest = policy == Policy.Contest;
        bool replicate = policy == Policy.Replicate;
        if (from == TaskState.Open) {
            return to == TaskState.Running || to == TaskState.Cancelled;
        }
        if (_ended(from)) return false;
        if (to == TaskState.Failed) return from != TaskState.Auditing && !(audit && from == TaskState.Window);
        if (from == TaskState.Running) {
            return to == (replicate || contest ? TaskState.Revealing : TaskState.Submitted);
        }
        if (from == TaskState.Revealing) {
            return to == (contest ? TaskState.Submitted : TaskState.Settled);
        }
        if (from == TaskState.Submitted) {
            return to == TaskState.Auditing || (audit && to == TaskState.Window);
        }
        if (from == TaskState.Auditing) {
            // Who opens after the last second of the commitments needs not expire first.
            return to == TaskState.Window || (audit && to == TaskState.Opening);
        }
        if (from == TaskState.Opening) return to == TaskState.Window;
        if (from == TaskState.Disputed) return to == TaskState.Window;
        return to == TaskState.Settled || (audit && to == TaskState.Disputed);
    }

    function _mayFollow(DisputeState from, DisputeState to) private pure returns (bool) {
        if (from == DisputeState.None) {
            return to == DisputeState.Unserved || to == DisputeState.Called;
        }
        if (!_pends(from)) return false;
        if (to == DisputeState.Void) return true;
        if (from == DisputeState.Unserved) {
            return to == DisputeState.Called || to == DisputeState.Upheld;
        }
        if (from == DisputeState.Called) {
            return to == DisputeState.Hearing || to == DisputeState.Dismissed || to == DisputeState.Inconclusive;
        }
        if (from == DisputeState.Hearing) return to == DisputeState.Ruling;
        return to == DisputeState.Called || to == DisputeState.Upheld
            || to == DisputeState.Rejected || to == DisputeState.Inconclusive;
    }
}
