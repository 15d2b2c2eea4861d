// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../../../contracts/interfaces/IMarketTypes.sol";
import {ITrainingMarket} from "../../../contracts/interfaces/ITrainingMarket.sol";
import {MarketDisputes} from "../../../contracts/MarketDisputes.sol";
import {MarketSettlement} from "../../../contracts/MarketSettlement.sol";
import {TrainingMarket} from "../../../contracts/TrainingMarket.sol";
import {ForgeTest} from "./ForgeTest.sol";
import {vm} from "./Vm.sol";

/// @notice The market's three parts, deployed with the parameters of a new market.
abstract contract Deployment is ForgeTest {
    address internal constant BURN = 0x000000000000000000000000000000000000dEaD;
    address internal constant OWNER = address(0x04E4);
    address internal constant NATIVE = address(0);
    bytes32 internal constant ENV_CLASS = keccak256("class");
    uint32 internal constant OWN_PANEL = type(uint32).max;
    uint256 internal constant BPS = 10_000;

    function _params() internal pure returns (IMarketTypes.Params memory) {
        return IMarketTypes.Params({
            seatBond: 0.09 ether,
            unbondFor: 7 days,
            faultBps: 2_000,
            finderBps: 5_000,
            requesterBps: 3_000,
            referees: 3,
            escalation: 5,
            drawDelay: 1,
            minWindow: 60
        });
    }

    function _deploy() internal returns (ITrainingMarket) {
        return _deploy(NATIVE, _params());
    }

    function _deploy(address currency, IMarketTypes.Params memory params) internal returns (ITrainingMarket) {
        MarketDisputes disputes = new MarketDisputes();
        MarketSettlement settlement = new MarketSettlement(address(disputes));
        return ITrainingMarket(address(new TrainingMarket(currency, OWNER, address(settlement), params)));
    }

    /// @dev Value that `who` did not have before comes from nowhere.
    function _deposit(ITrainingMarket market, address who, uint256 amount) internal {
        vm.deal(who, who.balance + amount);
        vm.prank(who);
        market.deposit{value: amount}(amount);
    }

    function _register(ITrainingMarket market, address who, uint96 bond) internal {
        vm.prank(who);
        market.register(keccak256("profile"), ENV_CLASS, bond);
    }

    function _credit(ITrainingMarket market, address who) internal view returns (uint256) {
        return market.account(who).credit;
    }

    function _assertCredit(ITrainingMarket market, address who, uint256 expected) internal view {
        vm.assertEq(_credit(market, who), expected, "credit");
    }

    function _assertState(ITrainingMarket market, IMarketTypes.TaskId id, IMarketTypes.TaskState expected)
        internal
        view
    {
        vm.assertEq(uint256(market.task(id).state), uint256(expected), "state of the task");
    }

    function _assertDispute(
        ITrainingMarket market,
        IMarketTypes.TaskId id,
        uint32 segment,
        IMarketTypes.DisputeState expected
    ) internal view {
        vm.assertEq(uint256(market.dispute(id, segment).state), uint256(expected), "state of the dispute");
    }

    /// @dev What the market holds covers what it owes, and nothing else lies in it.
    function _assertBalanced(ITrainingMarket market) internal view {
        (uint256 held, uint256 owed) = market.solvency();
        vm.assertEq(held, owed, "held and owed");
    }
}
