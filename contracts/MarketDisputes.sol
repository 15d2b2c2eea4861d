// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Disputes} from "./market/Disputes.sol";

/// @title The market's third part
/// @notice Carries out draws, audits and disputes on the storage of a `TrainingMarket`.
/// @dev Only of use through the market's delegatecall: its own storage is empty and holds no task and
/// no money.
contract MarketDisputes is Disputes {}
