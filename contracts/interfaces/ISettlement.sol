// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title The end of a task, and what can be read of it
/// @notice Every stage of a task ends by time. Anyone may carry out what is due: nobody's money
/// depends on somebody else's goodwill.
interface ISettlement is IMarketTypes {
    event RevealStarted(TaskId indexed id, uint256 revealBy);
    /// @notice Claims are in; a panel is drawn by the hash of `drawBlock`.
    /// @param lead slot whose claim is verified; without meaning in a contest, where all are
    event TaskSubmitted(
        TaskId indexed id, uint256 lead, uint256 drawBlock, uint256 pool, uint256 drawBy
    );
    /// @param paid what left the lock for the slots: stakes, rewards, and penalties that were burned
    event TaskSettled(TaskId indexed id, uint256 lead, uint256 paid, uint256 refunded);
    event TaskFailed(TaskId indexed id, Failure reason, uint256 refunded);
    event TaskCancelled(TaskId indexed id, uint256 refunded);

    error MarketNotRequester(TaskId id, address caller);
    error MarketWrongShares(TaskId id);

    /// @notice Takes an open task back; everyone gets everything back.
    function cancel(TaskId id) external;

    /// @notice Ends a task whose verification is over and pays everyone. Anyone may call it.
    function settle(TaskId id) external;

    /// @notice `settle` for a task whose slots agreed on shares.
    /// @param claim the lead claim
    /// @param shares the shares that it names
    function settleShares(TaskId id, Claim calldata claim, uint16[] calldata shares) external;

    /// @notice Moves a task on whose present stage is over: its time has passed, or all answers that
    /// it waited for are in. Anyone may call it.
    function expire(TaskId id) external;

    function task(TaskId id) external view returns (Task memory);
    function slot(TaskId id, uint256 index) external view returns (Slot memory);
    function taskCount() external view returns (uint256);
    /// @param segment the disputed segment, or `type(uint32).max` for the task's own auditors
    /// @param round number of the committee; zero for the task's own auditors
    function panel(TaskId id, uint32 segment, uint256 round) external view returns (Panel memory);
    function seat(TaskId id, uint32 segment, uint256 round, uint256 index) external view returns (Seat memory);
    function scores(TaskId id, uint256 seat) external view returns (uint32[] memory);
    function dispute(TaskId id, uint32 segment) external view returns (Dispute memory);
    function params(uint256 paramsId) external view returns (Params memory);
    function paramsCount() external view returns (uint256);

    /// @notice What stands behind a seat or a challenge of task `id`.
    function bondOf(TaskId id) external view returns (uint256);

    function poolSize(bytes32 envClass) external view returns (uint256);

    function poolMember(bytes32 envClass, uint256 index) external view returns (address);
    function worker(address who) external view returns (Worker memory);
    function account(address who) external view returns (Account memory);
}
