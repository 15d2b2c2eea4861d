// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../interfaces/IMarketTypes.sol";

/// @title Handing a call on
abstract contract Delegation {
    /// @dev The part that answers what this one does not know. It never changes.
    address internal immutable _next;

    constructor(address next) {
        if (next.code.length == 0) revert IMarketTypes.MarketNoCode(next);
        _next = next;
    }

    /// @notice Runs an unknown call with the next part's code on this contract's storage.
    fallback() external payable {
        address next = _next;
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, 0, calldatasize())
            let done := delegatecall(gas(), next, data, calldatasize(), 0, 0)
            returndatacopy(data, 0, returndatasize())
            if done { return(data, returndatasize()) }
            revert(data, returndatasize())
        }
    }
}
