// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Delegation} from "./market/Delegation.sol";
import {Endings} from "./market/Endings.sol";
import {Liveness} from "./market/Liveness.sol";

/// @title The market's second part
/// @notice Ends tasks, evicts silent workers, and answers reads, on the storage of a `TrainingMarket`.
/// @dev Only of use through the market's delegatecall: its own storage is empty and holds no task and
/// no money. Calls that it does not know go on to `MarketDisputes`.
contract MarketSettlement is Endings, Liveness, Delegation {
    constructor(address disputes) Delegation(disputes) {}
}
