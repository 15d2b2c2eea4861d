// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../interfaces/IMarketTypes.sol";

/// @title The market's storage
/// @dev The market and its disputes run on this same storage, the latter by delegatecall. It stands
/// first in both, so that their layouts agree; a check of the layout snapshots keeps it so.
abstract contract MarketStorage is IMarketTypes {
    /// @dev Credit of this account is burned money; nobody has its key.
    address internal constant BURN = 0x000000000000000000000000000000000000dEaD;
    uint256 internal constant BPS = 10_000;
    uint256 internal constant MAX_SLOTS = 32;
    uint256 internal constant MAX_SEATS = 15;
    /// @dev What a member answers if the data that it needs was not served.
    bytes32 internal constant UNSERVED = 0;
    /// @dev Names the task's own panel where referees' panels are named by their segment.
    uint32 internal constant OWN_PANEL = type(uint32).max;

    struct PanelSeats {
        Panel panel;
        Seat[MAX_SEATS] seats;
    }

    uint256 internal _owed;
    uint256 internal _taskCount;
    Params[] internal _params;
    mapping(address who => Account) internal _accounts;
    mapping(address who => Worker) internal _workers;
    mapping(bytes32 envClass => address[]) internal _pools;
    mapping(TaskId id => Task) internal _tasks;
    mapping(TaskId id => Slot[MAX_SLOTS]) internal _slots;
    mapping(TaskId id => mapping(uint32 segment => mapping(uint256 round => PanelSeats))) internal _panels;
    mapping(TaskId id => mapping(uint256 seat => uint32[])) internal _scores;
    mapping(TaskId id => mapping(uint32 segment => Dispute)) internal _disputes;
}
