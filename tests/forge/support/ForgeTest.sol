// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "./Vm.sol";

/// @notice Base of all forge tests.
abstract contract ForgeTest {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    address[] private _targets;
    FuzzSelector[] private _selectors;

    /// @notice Forge asks here which contracts it may call between two checks of an invariant.
    function targetContracts() external view returns (address[] memory) {
        return _targets;
    }

    /// @notice Forge asks here which functions of them it may call; all, where nothing is said.
    function targetSelectors() external view returns (FuzzSelector[] memory) {
        return _selectors;
    }

    function _target(address handler) internal {
        _targets.push(handler);
    }

    function _target(address handler, bytes4[] memory selectors) internal {
        _targets.push(handler);
        _selectors.push(FuzzSelector(handler, selectors));
    }

    /// @notice `value` folded into `low` to `high`, both included.
    function _bound(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        vm.assertLe(low, high, "empty range");
        if (low == 0 && high == type(uint256).max) return value;
        return low + value % (high - low + 1);
    }
}
