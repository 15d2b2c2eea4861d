// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../interfaces/IDisputes.sol";
import {Ledger} from "./Ledger.sol";

/// @title The stages of an audit
abstract contract Stages is Ledger {
    /// @dev All auditors have committed, or their time is over.
    function _endAuditing(TaskId id, Task storage t) internal {
        if (t.policy != Policy.Audit) return _startWindow(id, t, new bytes32[](0));
        t.state = TaskState.Opening;
        t.deadline = _after(t.answerFor);
        emit IDisputes.OpeningStarted(id, t.deadline);
    }

    /// @dev Nothing is left to copy: answers are revealed, and segments may be challenged.
    function _startWindow(TaskId id, Task storage t, bytes32[] memory states) internal {
        Panel storage p = _ownPanel(id).panel;
        p.revealBy = _after(t.answerFor);
        t.state = TaskState.Window;
        t.deadline = t.policy == Policy.Audit ? _after(t.challengeFor) : p.revealBy;
        emit IDisputes.WindowStarted(id, states, p.revealBy, t.deadline);
    }
}
