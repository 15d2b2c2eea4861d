// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {OddToken} from "../../contracts/mocks/OddToken.sol";
import {Campaign} from "./support/Campaign.sol";

/// @notice A market in the chain's own currency.
contract NativeInvariantsTest is Campaign {
    function setUp() public {
        _begin(_deploy());
    }

    /// @notice rules V1, V2, V5, C3, W3: money adds up and states follow the diagram after every step.
    /// forge-config: default.invariant.max_fuzz_dictionary_values = 64
    function invariant_allIsWell() public view {
        _assertAllIsWell();
    }

    /// @notice rules C2, V4, V5: all that began ends by time, and then all money leaves.
    function afterInvariant() public {
        _assertAllEnds();
    }
}

/// @notice A market in a token whose habits change all the time.
contract TokenInvariantsTest is Campaign {
    function setUp() public {
        _begin(_deploy(address(new OddToken()), _params()));
    }

    /// @notice rules V1, V2, V3, V5, C3: the same holds whatever the token does.
    /// forge-config: default.invariant.max_fuzz_dictionary_values = 64
    function invariant_allIsWell() public view {
        _assertAllIsWell();
    }

    /// @notice rules C2, V4, V5: all that began ends by time, and then all money leaves.
    function afterInvariant() public {
        _assertAllEnds();
    }
}
