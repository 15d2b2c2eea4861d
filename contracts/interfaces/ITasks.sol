// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title The life of a task, from post to the claims of its slots
interface ITasks is IMarketTypes {
    event TaskPosted(
        TaskId indexed id, address indexed requester, uint256 paramsId, uint256 joinBy, Terms terms
    );
    event SlotJoined(TaskId indexed id, address indexed worker, uint256 slot, bytes32 peerCard);
    event TaskStarted(TaskId indexed id, uint256 trainBy);
    event ClaimCommitted(TaskId indexed id, uint256 slot, bytes32 commitment);
    event ClaimRevealed(TaskId indexed id, uint256 slot, Claim claim);
    event ClaimSubmitted(TaskId indexed id, uint256 slot, Claim claim, uint16[] shares);
    /// @notice The market's parameters from the next task on.
    event ParamsSet(uint256 indexed paramsId, Params params);

    /// @param field name of the offending field, as ASCII
    error MarketInvalidTerms(bytes32 field);
    error MarketInvalidParams(bytes32 field);
    error MarketTooFewAuditors(uint256 available, uint256 needed);
    error MarketConflict(TaskId id, address account);
    error MarketNotAllowed(TaskId id, address account);
    error MarketRecordTooShort(address account, uint256 settled, uint256 needed);
    error MarketWrongClass(address account, bytes32 envClass, bytes32 needed);
    error MarketNoVacancy(TaskId id);
    error MarketZeroCommitment(TaskId id);
    error MarketWrongReveal(TaskId id, uint256 index);
    error MarketSignatureExpired(uint256 deadline);
    error MarketWrongSignature(address signer);

    /// @notice Posts a task and locks its escrow: `reward * slots + auditFee * audits`.
    /// @dev Where the currency is native, the value sent is credited first; any rest stays credited.
    function post(Terms calldata terms) external payable returns (TaskId id);

    /// @notice Takes a free slot and locks the stake.
    /// @param peerCard digest of the caller's peer card
    /// @param proof membership in the task's allow-list; empty if it has none
    /// @dev Also fills the slot of an evicted worker, as long as nobody has answered yet.
    function join(TaskId id, bytes32 peerCard, bytes32[] calldata proof) external payable;

    /// @notice Commits to a claim without showing it (Replicate, Contest).
    /// @param commitment `commitmentOf(...)` with the slot's worker and a secret salt
    function commit(TaskId id, uint256 slot, bytes32 commitment) external;

    /// @notice `commit` by EIP-712 signature of the slot's worker; anyone may relay it.
    function commitBySig(
        TaskId id, uint256 slot, bytes32 commitment, uint256 deadline, bytes calldata signature
    ) external;

    /// @notice Shows a committed claim. Anyone may relay it: the commitment names the worker.
    function reveal(TaskId id, uint256 slot, bytes32 salt, bytes32 result, bytes32 root) external;

    /// @notice Submits a claim in the open (Audit, Score). A slot that disagrees with its peers
    /// submits its own claim, and so does not answer for theirs.
    /// @param shares hundredths of a percent of the whole reward per slot, if the terms say so
    function submit(
        TaskId id, uint256 slot, bytes32 result, bytes32 root, uint16[] calldata shares
    ) external;

    /// @notice `submit` by EIP-712 signature of the slot's worker; anyone may relay it.
    function submitBySig(
        TaskId id,
        uint256 slot,
        bytes32 result,
        bytes32 root,
        uint16[] calldata shares,
        uint256 deadline,
        bytes calldata signature
    ) external;

    /// @notice Stops or allows new posts. Nothing else can be paused.
    function setPaused(bool paused) external;

    /// @notice Sets the parameters of future tasks.
    function setParams(Params calldata params) external;

    function commitmentOf(
        TaskId id, address worker, bytes32 salt, bytes32 result, bytes32 root
    ) external view returns (bytes32);
}
