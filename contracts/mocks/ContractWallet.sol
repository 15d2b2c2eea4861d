// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @notice A wallet whose signatures are its keeper's (ERC-1271).
contract ContractWallet is IERC1271 {
    address public immutable keeper;

    constructor(address keeper_) {
        keeper = keeper_;
    }

    receive() external payable {}

    function act(address to, uint256 value, bytes calldata data) external payable {
        (bool done,) = to.call{value: value}(data);
        require(done, "call failed");
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        return ECDSA.recover(hash, signature) == keeper ? IERC1271.isValidSignature.selector : bytes4(0);
    }
}
