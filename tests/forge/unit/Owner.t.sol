// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {MarketSettlement} from "../../../contracts/MarketSettlement.sol";
import {TrainingMarket} from "../../../contracts/TrainingMarket.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice What the owner can do, and how the market's parts stand together.
contract OwnerTest is TaskDriver {
    event ParamsSet(uint256 indexed paramsId, Params params);

    /// @dev Rules O2, C3, W5: new parameters hold for new tasks, and leave running ones alone.
    function test_paramsAreForFutureTasks() external {
        TaskId before = _post(_terms(Policy.Audit));
        Params memory changed = _params();
        changed.seatBond = 0.5 ether;

        vm.expectEmit(address(market));
        emit ParamsSet(1, changed);
        vm.prank(OWNER);
        market.setParams(changed);

        TaskId later = _post(_terms(Policy.Audit));
        vm.assertEq(market.bondOf(before), BOND);
        vm.assertEq(market.bondOf(later), 0.5 ether);
        vm.assertEq(market.task(later).paramsId, 1);
        vm.assertEq(market.paramsCount(), 2);
        vm.assertEq(market.params(0).seatBond, BOND);
        vm.assertEq(market.params(1).seatBond, 0.5 ether);
    }

    /// @dev Rule O2: parameters beyond the fixed bounds are refused with the name of the field.
    function test_wrongParamsAreRefused() external {
        Params memory wrong = _params();
        wrong.seatBond = 0;
        _refusedParams(wrong, "seatBond");
        wrong.seatBond = 100 * BOND + 1;
        _refusedParams(wrong, "seatBond");
        wrong = _params();
        wrong.unbondFor = 30 days + 1;
        _refusedParams(wrong, "unbondFor");
        wrong = _params();
        wrong.faultBps = 5_001;
        _refusedParams(wrong, "faultBps");
        wrong = _params();
        (wrong.finderBps, wrong.requesterBps) = (6_000, 3_001);
        _refusedParams(wrong, "finderBps");
        wrong = _params();
        wrong.referees = 1;
        _refusedParams(wrong, "referees");
        wrong.referees = 4;
        _refusedParams(wrong, "referees");
        wrong = _params();
        wrong.escalation = 3;
        _refusedParams(wrong, "escalation");
        wrong.escalation = 17;
        _refusedParams(wrong, "escalation");
        wrong.escalation = 6;
        _refusedParams(wrong, "escalation");
        wrong = _params();
        wrong.drawDelay = 0;
        _refusedParams(wrong, "drawDelay");
        wrong.drawDelay = 65;
        _refusedParams(wrong, "drawDelay");
        wrong = _params();
        wrong.minWindow = 0;
        _refusedParams(wrong, "minWindow");
        wrong.minWindow = 1 days + 1;
        _refusedParams(wrong, "minWindow");
        vm.assertEq(market.paramsCount(), 1);
    }

    /// @dev Rules O1, O2: nobody else pauses or tunes.
    function test_strangersAreRefused() external {
        bytes memory reason = abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, STRANGER);

        _refused(STRANGER, abi.encodeCall(market.setPaused, (true)), reason);
        _refused(STRANGER, abi.encodeCall(market.setParams, (_params())), reason);
    }

    /// @dev Rule O2: ownership moves when the new owner takes it.
    function test_ownershipMovesInTwoSteps() external {
        Ownable2Step owned = Ownable2Step(address(market));
        vm.prank(OWNER);
        owned.transferOwnership(STRANGER);
        vm.assertEq(owned.owner(), OWNER);

        vm.prank(STRANGER);
        owned.acceptOwnership();

        vm.assertEq(owned.owner(), STRANGER);
    }

    /// @dev Rule C2: a market without its other parts could not pay out; it cannot be built.
    function test_partsMustHaveCode() external {
        bytes memory reason = abi.encodeWithSelector(MarketNoCode.selector, STRANGER);

        vm.expectRevert(reason);
        new MarketSettlement(STRANGER);
        vm.expectRevert(reason);
        new TrainingMarket(NATIVE, OWNER, STRANGER, _params());
        vm.expectRevert(reason);
        new TrainingMarket(STRANGER, OWNER, address(market), _params());
    }

    /// @dev Rule V1: a call that no part knows, and value with a call that takes none, are refused.
    function test_unknownCallsAreRefused() external {
        vm.deal(STRANGER, 1 ether);
        bytes[2] memory calls = [abi.encodeWithSignature("unknown()"), abi.encodeCall(market.burn, ())];
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.prank(STRANGER);
            (bool done, bytes memory answer) = address(market).call{value: 1 ether}(calls[i]);

            vm.assertFalse(done);
            vm.assertEq(answer, "");
        }
        vm.assertEq(STRANGER.balance, 1 ether);
    }

    /// @dev Rule V2: the market says in which currency it deals.
    function test_currency() external view {
        vm.assertEq(market.currency(), NATIVE);
    }

    function _refusedParams(Params memory wrong, bytes32 field) private {
        _refused(
            OWNER,
            abi.encodeCall(market.setParams, (wrong)),
            abi.encodeWithSelector(ITasks.MarketInvalidParams.selector, field)
        );
    }
}
