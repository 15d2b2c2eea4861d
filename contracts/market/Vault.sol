// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IVault} from "../interfaces/IVault.sol";
import {Ledger} from "./Ledger.sol";

/// @title The only door for money
abstract contract Vault is Ledger, ReentrancyGuard, IVault {
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    /// @inheritdoc IVault
    address public immutable currency;

    constructor(address currency_) {
        if (currency_ != address(0) && currency_.code.length == 0) revert MarketNoCode(currency_);
        currency = currency_;
    }

    /// @inheritdoc IVault
    function deposit(uint256 amount) external payable nonReentrant {
        if (currency == address(0)) {
            if (msg.value != amount) revert MarketWrongValue(msg.value, amount);
            _creditValue();
        } else {
            if (msg.value != 0) revert MarketWrongValue(msg.value, 0);
            _pull(amount);
        }
    }

    /// @inheritdoc IVault
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        nonReentrant
    {
        if (currency == address(0)) revert MarketNotToken();
        // Whoever saw the permit may have used it first, which leaves the allowance that it gives.
        try IERC20Permit(currency).permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _pull(amount);
    }

    /// @inheritdoc IVault
    function withdraw(address to, uint256 amount) external nonReentrant {
        _pay(msg.sender, to, amount);
    }

    /// @inheritdoc IVault
    function burn() external nonReentrant {
        _pay(BURN, BURN, _accounts[BURN].credit);
    }

    /// @inheritdoc IVault
    function solvency() external view returns (uint256 held, uint256 owed) {
        held = currency == address(0) ? address(this).balance : IERC20(currency).balanceOf(address(this));
        owed = _owed;
    }

    /// @dev Credits the value sent along with a call; a token market takes none.
    function _creditValue() internal {
        if (msg.value == 0) return;
        if (currency != address(0)) revert MarketWrongValue(msg.value, 0);
        _enter(msg.value);
    }

    function _pull(uint256 amount) private {
        IERC20 token = IERC20(currency);
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(msg.sender, address(this), amount);
        // INVARIANT: credited is what arrived, whatever the token promised.
        _enter(token.balanceOf(address(this)) - before);
    }

    function _enter(uint256 amount) private {
        // INVARIANT: all that is owed fits the 128 bits of one credit, so that no crediting can overflow.
        _owed = (_owed + amount).toUint128();
        _accounts[msg.sender].credit = (_accounts[msg.sender].credit + amount).toUint128();
        emit Deposited(msg.sender, amount);
    }

    function _pay(address from, address to, uint256 amount) private {
        // Nobody could ever take it out of these again.
        if (to == address(0) || to == address(this)) revert MarketTransferFailed(to, amount);
        _debit(from, amount);
        _owed -= amount;
        emit Withdrawn(from, to, amount);

        if (currency == address(0)) {
            (bool sent,) = to.call{value: amount}("");
            if (!sent) revert MarketTransferFailed(to, amount);
        } else {
            IERC20 token = IERC20(currency);
            uint256 before = token.balanceOf(address(this));
            token.safeTransfer(to, amount);
            uint256 left = token.balanceOf(address(this));
            // INVARIANT: nobody's withdrawal costs the others more than its own amount.
            if (left + amount < before) revert MarketTokenTookMore(amount, before - left);
        }
    }
}
