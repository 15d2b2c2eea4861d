// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ITasks} from "../interfaces/ITasks.sol";
import {Workers} from "./Workers.sol";

/// @title Posting a task and filling its slots
abstract contract Tasks is Workers, Pausable, ITasks {
    using SafeCast for uint256;

    uint256 private constant MAX_DURATION = 365 days;
    /// @dev Members are drawn without being asked; their bonds must come free in a foreseeable time.
    uint256 private constant MAX_AUDIT = 30 days;
    uint256 private constant MAX_ANSWER = 7 days;
    uint256 private constant MAX_BOND_PER_FEE = 100;

    /// @inheritdoc ITasks
    function post(Terms calldata terms) external payable whenNotPaused returns (TaskId id) {
        uint256 paramsId = _params.length - 1;
        _validate(terms, paramsId);
        _creditValue();

        id = TaskId.wrap(++_taskCount);
        Task storage t = _tasks[id];
        t.deadline = _after(terms.joinFor);
        t.state = TaskState.Open;
        t.requester = msg.sender;
        t.policy = terms.policy;
        t.slots = terms.slots;
        t.quorum = terms.quorum;
        t.audits = terms.audits;
        t.minAudits = terms.minAudits;
        t.sharesAgreed = terms.sharesAgreed;
        t.paramsId = paramsId.toUint16();
        t.minSettled = terms.minSettled;
        t.reward = terms.reward;
        t.stake = terms.stake;
        t.segments = terms.segments;
        t.target = terms.target;
        t.auditFee = terms.auditFee;
        t.trainFor = terms.trainFor;
        t.auditFor = terms.auditFor;
        t.answerFor = terms.answerFor;
        t.challengeFor = terms.challengeFor;
        t.tolerance = terms.tolerance;
        t.manifest = terms.manifest;
        t.envClass = terms.envClass;
        if (terms.allowList != 0) {
            t.listed = true;
            t.allowList = terms.allowList;
        }
        emit TaskPosted(id, msg.sender, paramsId, t.deadline, terms);
        _lock(t, msg.sender, uint256(terms.reward) * terms.slots + uint256(terms.auditFee) * terms.audits);
    }

    /// @inheritdoc ITasks
    function join(TaskId id, bytes32 peerCard, bytes32[] calldata proof) external payable {
        Task storage t = _tasks[id];
        TaskState state = t.state;
        if (state != TaskState.Open && state != TaskState.Running) revert MarketUnexpectedState(id, state);
        _before(id, t.deadline);
        _creditValue();
        _admit(id, t, proof);

        uint256 index = _vacancy(id, t);
        Slot storage s = _slots[id][index];
        s.worker = msg.sender;
        s.pongBy = 0;
        s.quietUntil = 0;
        t.joined |= _bit(index);
        emit SlotJoined(id, msg.sender, index, peerCard);
        _lock(t, msg.sender, t.stake);

        if (state == TaskState.Open && t.joined == _full(t.slots)) {
            t.state = TaskState.Running;
            t.deadline = _after(t.trainFor);
            emit TaskStarted(id, t.deadline);
        }
    }

    /// @dev Moves the task on if all answers that it waits for are in.
    function _advance(TaskId id) internal virtual;

    function _admit(TaskId id, Task storage t, bytes32[] calldata proof) private view {
        if (msg.sender == t.requester) revert MarketConflict(id, msg.sender);
        bytes32 envClass = _workers[msg.sender].envClass;
        if (envClass == 0) revert MarketNotRegistered(msg.sender);
        if (!_scored(t.policy) && envClass != t.envClass) revert MarketWrongClass(msg.sender, envClass, t.envClass);
        uint256 settled = _accounts[msg.sender].settled;
        if (settled < t.minSettled) revert MarketRecordTooShort(msg.sender, settled, t.minSettled);
        if (!t.listed) return;
        bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(msg.sender))));
        if (!MerkleProof.verifyCalldata(proof, t.allowList, leaf)) revert MarketNotAllowed(id, msg.sender);
    }

    /// @dev The first free slot. One account holds at most one slot of a task.
    function _vacancy(TaskId id, Task storage t) private view returns (uint256 index) {
        uint256 slots = t.slots;
        uint32 joined = t.joined;
        index = slots;
        for (uint256 i = 0; i < slots; ++i) {
            if (!_has(joined, i)) {
                if (index == slots) index = i;
            } else if (_slots[id][i].worker == msg.sender) {
                revert MarketConflict(id, msg.sender);
            }
        }
        // A latecomer must not be paid for what others have already answered.
        if (index == slots || t.answered != 0) revert MarketNoVacancy(id);
    }

    function _validate(Terms calldata terms, uint256 paramsId) private view {
        Policy policy = terms.policy;
        if (terms.manifest == 0) _refuse("manifest");
        if (terms.envClass == 0) _refuse("envClass");
        if (terms.slots == 0 || terms.slots > MAX_SLOTS) _refuse("slots");
        _validateVerification(terms, policy);
        if (terms.sharesAgreed && _blind(policy)) _refuse("sharesAgreed");
        // Nobody is to be fined for missing a window that no block falls into.
        uint256 least = _params[paramsId].minWindow;
        _validateDuration(terms.joinFor, 1, MAX_DURATION, "joinFor");
        _validateDuration(terms.trainFor, least, MAX_DURATION, "trainFor");
        _validateDuration(terms.auditFor, least, MAX_AUDIT, "auditFor");
        _validateDuration(terms.answerFor, least, MAX_ANSWER, "answerFor");
        _validateDuration(terms.challengeFor, 0, MAX_AUDIT, "challengeFor");
        // INVARIANT: all that a task can lock fits its 96 bits.
        uint256 most = (uint256(terms.reward) + terms.stake) * terms.slots + uint256(terms.auditFee) * terms.audits;
        if (most > type(uint96).max) _refuse("reward");
        _validateFee(terms, paramsId);
    }

    function _validateFee(Terms calldata terms, uint256 paramsId) private view {
        if (terms.policy == Policy.Replicate) return;
        uint256 seatBond = _params[paramsId].seatBond;
        // A seat locks a bond, which is not to be had for nothing.
        if (uint256(terms.auditFee) * MAX_BOND_PER_FEE < seatBond) _refuse("auditFee");
        if (terms.policy != Policy.Audit) return;
        // INVARIANT: the bond behind a wrong accusation, and the stakes behind a wrong claim, pay both
        // committees of referees.
        uint256 cost = _refereeCost(paramsId, terms.auditFee);
        if (cost > seatBond) _refuse("auditFee");
        if (uint256(terms.stake) * terms.quorum < cost) _refuse("stake");
    }

    function _validateVerification(Terms calldata terms, Policy policy) private view {
        uint256 quorum = terms.quorum;
        bool evaluated = _scored(policy);
        if (quorum == 0 || quorum > terms.slots) _refuse("quorum");
        if (policy == Policy.Replicate && quorum * 2 <= terms.slots) _refuse("quorum");
        // Where slots work together, more than a majority would only be a veto.
        if (!_blind(policy) && quorum * 2 > uint256(terms.slots) + 1) _refuse("quorum");
        if (terms.audits > MAX_SEATS) _refuse("audits");
        if (policy == Policy.Replicate && terms.audits != 0) _refuse("audits");
        // A median wants an odd number of evaluators.
        if (evaluated && terms.audits % 2 == 0) _refuse("audits");
        if ((policy == Policy.Audit) != (terms.segments != 0)) _refuse("segments");
        if (terms.segments > type(uint32).max - 1) _refuse("segments");
        uint256 seats = policy == Policy.Audit ? _auditable(terms.segments, terms.audits) : terms.audits;
        if (terms.minAudits > seats || (evaluated && terms.minAudits == 0)) _refuse("minAudits");
        if (terms.minAudits == 0) return;
        uint256 members = _pools[terms.envClass].length;
        if (terms.minAudits > members) revert MarketTooFewAuditors(members, terms.minAudits);
    }

    function _validateDuration(uint256 duration, uint256 least, uint256 most, bytes32 field) private pure {
        if (duration < least || duration > most) _refuse(field);
    }

    function _refuse(bytes32 field) private pure {
        revert MarketInvalidTerms(field);
    }
}
