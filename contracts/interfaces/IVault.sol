// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title Credits and withdrawals
/// @notice Money enters by `deposit` (or with `post`, `join`, `register` and `addBond` where the
/// currency is native) and leaves by `withdraw` alone. Everything between is bookkeeping.
/// @dev The vault is solvent at all times: what it holds is at least the sum of all credits, all
/// tasks' locks, all bonds of workers and all bonds of disputes.
interface IVault is IMarketTypes {
    event Deposited(address indexed account, uint256 amount);
    event Withdrawn(address indexed account, address indexed to, uint256 amount);
    /// @notice `amount` left a lock or a bond for the credit of `account`. The way in has no event of its
    /// own: posting locks the escrow of the terms, joining their stake.
    event Credited(TaskId indexed id, address indexed account, uint256 amount);
    event Recorded(TaskId indexed id, address indexed worker, Record entry);

    error MarketWrongValue(uint256 sent, uint256 expected);
    error MarketInsufficientCredit(address account, uint256 credit, uint256 needed);
    error MarketTransferFailed(address to, uint256 amount);
    error MarketTokenTookMore(uint256 asked, uint256 taken);
    error MarketNotToken();

    /// @notice Credits the caller with what arrives.
    /// @dev A token that keeps a fee is credited by what the market received, not by `amount`.
    /// Rebasing tokens, whose balances shrink on their own, must not be used as a currency.
    function deposit(uint256 amount) external payable;

    /// @notice `deposit` that first uses an ERC-2612 permit.
    /// @dev A permit that somebody else has already used does no harm: the allowance is what counts.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// @notice Sends `amount` of the caller's credit to `to`. Works while the market is paused.
    function withdraw(address to, uint256 amount) external;

    /// @notice Sends what was burned to an address that nobody holds the key of.
    function burn() external;

    /// @notice The market's currency; zero for the chain's own.
    function currency() external view returns (address);

    /// @notice What the market holds and what it owes to all parties together.
    function solvency() external view returns (uint256 held, uint256 owed);
}
