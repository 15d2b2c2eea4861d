// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "./IDisputes.sol";
import {ILiveness} from "./ILiveness.sol";
import {ISettlement} from "./ISettlement.sol";
import {ITasks} from "./ITasks.sol";
import {IVault} from "./IVault.sol";
import {IWorkers} from "./IWorkers.sol";

/// @title The whole market behind one address
/// @dev `TrainingMarket` answers the vault, the workers and the tasks itself; what it does not know it
/// hands to `MarketSettlement`, and that to `MarketDisputes`, each by delegatecall.
interface ITrainingMarket is IVault, IWorkers, ITasks, ILiveness, ISettlement, IDisputes {}
