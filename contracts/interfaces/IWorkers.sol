// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title The register of workers
/// @notice A worker names its profile and its environment class. With a bond it also joins the pool
/// of its class, from which the chain draws auditors, evaluators and referees.
interface IWorkers is IMarketTypes {
    event WorkerRegistered(address indexed worker, bytes32 indexed envClass, bytes32 profile);
    event ProfileChanged(address indexed worker, bytes32 profile);
    /// @param poolIndex place in the class's pool, counted from one; zero without a bond
    event BondAdded(address indexed worker, uint256 amount, uint256 poolIndex, uint256 since);
    event DutySet(address indexed worker, uint256 minFee, uint256 minAuditFor, uint256 minAnswerFor, uint256 since);
    /// @dev The pool's last member takes the place of the one that left.
    event WorkerRetired(address indexed worker, uint256 unbondsAt);
    event BondReturned(address indexed worker, uint256 amount);

    error MarketNotRegistered(address account);
    error MarketNotRetired(address account);
    error MarketAlreadyRegistered(address account);
    error MarketZeroDigest();
    error MarketBondTooLow(uint256 bond, uint256 minimum);
    error MarketBondInUse(address worker, uint256 locked);
    error MarketUnbonding(address worker, uint256 until);

    /// @notice Registers the caller; a bond above zero opts in to audits and referee's duty.
    /// @dev The bond comes out of the caller's credit. A drawn member that does not answer loses
    /// part of it: opt in only with an agent that is always on.
    function register(bytes32 profile, bytes32 envClass, uint96 bond) external payable;

    function setProfile(bytes32 profile) external;

    /// @notice Adds to the caller's bond, and opts in if it was without one.
    function addBond(uint96 amount) external payable;

    /// @notice Sets the terms under which the caller may be drawn; at first all terms will do.
    /// @dev A drawn member is bound by the task's terms without being asked: set a fee that pays for
    /// a segment, and times that the machine can meet.
    function setDuty(uint96 minFee, uint32 minAuditFor, uint32 minAnswerFor) external;

    /// @notice Takes the caller out of the register and the pool; seats already drawn stay its duty.
    function retire() external;

    /// @notice Returns a retired worker's bond, once the delay is over and no seat holds it.
    function unbond() external;

}
