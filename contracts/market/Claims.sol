// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {ISettlement} from "../interfaces/ISettlement.sol";
import {ITasks} from "../interfaces/ITasks.sol";
import {Tasks} from "./Tasks.sol";

/// @title Claims of the slots
abstract contract Claims is Tasks, EIP712 {
    bytes32 private constant COMMITMENT_TYPE =
        keccak256("Commitment(uint256 task,uint256 slot,bytes32 commitment,uint256 deadline)");
    bytes32 private constant SUBMISSION_TYPE = keccak256(
        "Submission(uint256 task,uint256 slot,bytes32 result,bytes32 root,bytes32 shares,uint256 deadline)"
    );

    /// @inheritdoc ITasks
    function commit(TaskId id, uint256 index, bytes32 commitment) external {
        _commit(id, index, msg.sender, commitment);
    }

    /// @inheritdoc ITasks
    function commitBySig(
        TaskId id,
        uint256 index,
        bytes32 commitment,
        uint256 deadline,
        bytes calldata signature
    ) external {
        bytes32 hash = keccak256(abi.encode(COMMITMENT_TYPE, id, index, commitment, deadline));
        _commit(id, index, _signer(id, index, hash, deadline, signature), commitment);
    }

    /// @inheritdoc ITasks
    function reveal(TaskId id, uint256 index, bytes32 salt, bytes32 result, bytes32 root) external {
        Task storage t = _in(id, TaskState.Revealing);
        _before(id, t.deadline);
        if (!_has(t.answered, index)) revert MarketWrongReveal(id, index);
        if (_has(t.revealed, index)) revert MarketAlreadyAnswered(id, index);
        Slot storage s = _slots[id][index];
        if (s.digest != commitmentOf(id, s.worker, salt, result, root)) revert MarketWrongReveal(id, index);

        Claim memory claim = Claim(result, root, 0);
        s.digest = _claimDigest(claim);
        t.revealed |= _bit(index);
        emit ClaimRevealed(id, index, claim);
        if (t.policy == Policy.Contest && t.revealed == t.answered) _advance(id);
    }

    /// @inheritdoc ITasks
    function submit(TaskId id, uint256 index, bytes32 result, bytes32 root, uint16[] calldata shares) external {
        _submit(id, index, msg.sender, result, root, shares);
    }

    /// @inheritdoc ITasks
    function submitBySig(
        TaskId id,
        uint256 index,
        bytes32 result,
        bytes32 root,
        uint16[] calldata shares,
        uint256 deadline,
        bytes calldata signature
    ) external {
        bytes32 hash =
            keccak256(abi.encode(SUBMISSION_TYPE, id, index, result, root, _sharesDigest(shares), deadline));
        _submit(id, index, _signer(id, index, hash, deadline, signature), result, root, shares);
    }

    /// @inheritdoc ITasks
    function commitmentOf(TaskId id, address holder, bytes32 salt, bytes32 result, bytes32 root)
        public
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(this), id, holder, salt, result, root));
    }

    function _commit(TaskId id, uint256 index, address holder, bytes32 commitment) private {
        Task storage t = _answering(id, index, holder, true);
        if (commitment == 0) revert MarketZeroCommitment(id);
        _slots[id][index].digest = commitment;
        t.answered |= _bit(index);
        emit ClaimCommitted(id, index, commitment);
        if (t.answered == t.joined) _advance(id);
    }

    function _submit(
        TaskId id,
        uint256 index,
        address holder,
        bytes32 result,
        bytes32 root,
        uint16[] calldata shares
    ) private {
        Task storage t = _answering(id, index, holder, false);
        _checkShares(id, t, shares);
        Claim memory claim = Claim(result, root, _sharesDigest(shares));
        _slots[id][index].digest = _claimDigest(claim);
        t.answered |= _bit(index);
        emit ClaimSubmitted(id, index, claim, shares);
        if (t.answered == t.joined) _advance(id);
    }

    /// @dev A running task in which `holder` may answer for slot `index` now.
    function _answering(TaskId id, uint256 index, address holder, bool blind)
        private
        view
        returns (Task storage t)
    {
        t = _in(id, TaskState.Running);
        if (_blind(t.policy) != blind) revert MarketWrongPolicy(id, t.policy);
        _before(id, t.deadline);
        _holder(id, t, index, holder);
        if (_has(t.answered, index)) revert MarketAlreadyAnswered(id, index);
    }

    function _signer(TaskId id, uint256 index, bytes32 structHash, uint256 deadline, bytes calldata signature)
        private
        view
        returns (address signer)
    {
        if (block.timestamp >= deadline) revert MarketSignatureExpired(deadline);
        if (index >= MAX_SLOTS) revert MarketNotSlotHolder(id, index, msg.sender);
        signer = _slots[id][index].worker;
        if (!SignatureChecker.isValidSignatureNow(signer, _hashTypedDataV4(structHash), signature)) {
            revert MarketWrongSignature(signer);
        }
    }

    function _checkShares(TaskId id, Task storage t, uint16[] calldata shares) private view {
        if (shares.length != (t.sharesAgreed ? t.slots : 0)) revert ISettlement.MarketWrongShares(id);
        uint256 sum = 0;
        for (uint256 i = 0; i < shares.length; ++i) sum += shares[i];
        // INVARIANT: shares never promise more than the whole reward.
        if (sum > BPS) revert ISettlement.MarketWrongShares(id);
    }
}
