// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title Leaving, and proving to be alive
/// @notice Liveness is proven only when somebody asks, so that the happy path costs nothing.
interface ILiveness is IMarketTypes {
    event SlotLeft(TaskId indexed id, address indexed worker, uint256 slot);
    event SlotPinged(TaskId indexed id, uint256 slot, address indexed by, uint256 pongBy);
    event SlotPonged(TaskId indexed id, uint256 slot, uint256 quietUntil);
    event SlotEvicted(TaskId indexed id, uint256 slot, address indexed worker, uint256 penalty);

    error MarketNotParty(TaskId id, address caller);
    error MarketAlreadyPinged(TaskId id, uint256 slot, uint256 pongBy);
    error MarketNotPinged(TaskId id, uint256 slot);

    /// @notice Gives a slot back while the task is open.
    function leave(TaskId id, uint256 slot) external;

    /// @notice Asks the worker of a slot for a sign of life. For the requester and the slots' holders.
    /// @dev A worker that answered is left in peace for `answerFor`.
    function ping(TaskId id, uint256 slot) external;

    function pong(TaskId id, uint256 slot) external;

    /// @notice Removes a worker that left a ping unanswered; part of its stake is slashed.
    function evict(TaskId id, uint256 slot) external;
}
