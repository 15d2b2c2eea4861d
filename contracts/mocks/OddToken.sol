// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// @notice A token with one bad habit at a time, which a test switches on.
contract OddToken is ERC20Permit {
    enum Habit {
        None,
        /// Keeps a hundredth of what is transferred.
        Fee,
        /// Takes a hundredth more from the sender than is transferred.
        Overcharge,
        /// Answers false and transfers nothing.
        False,
        /// Transfers and answers nothing at all, as some old tokens do.
        Silent,
        /// Calls both sides back before the transfer, as ERC-777 did.
        Callback
    }

    Habit public habit;

    constructor() ERC20("Odd", "ODD") ERC20Permit("Odd") {}

    function setHabit(Habit habit_) external {
        habit = habit_;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        return _oddly(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        _spendAllowance(from, msg.sender, amount);
        return _oddly(from, to, amount);
    }

    function _oddly(address from, address to, uint256 amount) private returns (bool) {
        if (habit == Habit.False) return false;
        if (habit == Habit.Callback) {
            _call(from);
            _call(to);
        }
        _transfer(from, to, amount);
        if (habit == Habit.Fee) _burn(to, amount / 100);
        if (habit == Habit.Overcharge) _burn(from, amount / 100);
        if (habit == Habit.Silent) {
            assembly ("memory-safe") {
                return(0, 0)
            }
        }
        return true;
    }

    function _call(address side) private {
        if (side.code.length == 0) return;
        // What the side does in it is its own business, and so is its failure.
        (bool done,) = side.call(abi.encodeWithSignature("tokensMoved()"));
        done;
    }
}
