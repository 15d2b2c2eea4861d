// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../contracts/interfaces/IDisputes.sol";
import {ILiveness} from "../../contracts/interfaces/ILiveness.sol";
import {IMarketTypes} from "../../contracts/interfaces/IMarketTypes.sol";
import {ISettlement} from "../../contracts/interfaces/ISettlement.sol";
import {ITasks} from "../../contracts/interfaces/ITasks.sol";
import {IVault} from "../../contracts/interfaces/IVault.sol";
import {IWorkers} from "../../contracts/interfaces/IWorkers.sol";
import {Campaign} from "./support/Campaign.sol";
import {Vm, vm} from "./support/Vm.sol";

/// @notice Invariants prove little about states that a campaign never gets into: this one gets everywhere.
contract InvariantsReachTest is Campaign {
    uint256 private constant STEPS = 4_000;

    mapping(IMarketTypes.Failure reason => uint256) private _failures;

    function setUp() public {
        _begin(_deploy());
        bytes4[] memory steps = _steps();
        vm.recordLogs();
        for (uint256 i = 0; i < STEPS; ++i) {
            uint256 seed = uint256(keccak256(abi.encode(i)));
            (bool done,) = address(handler).call(abi.encodeWithSelector(steps[seed % steps.length], seed));
            // A step may be refused, as in a campaign.
            done;
            this.countFailures();
        }
    }

    /// @dev From outside, so that the memory of the logs is given back.
    function countFailures() external {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != ISettlement.TaskFailed.selector) continue;
            (IMarketTypes.Failure reason,) = abi.decode(logs[i].data, (IMarketTypes.Failure, uint256));
            ++_failures[reason];
        }
    }

    /// @notice rule C2: most steps do something.
    function test_MostStepsGoThrough() public view {
        vm.assertGe(handler.steps(), STEPS * 9 / 10, "steps");
    }

    /// @notice rules C1, V1: every function of the market was called, and it went through.
    function test_EveryFunctionIsReached() public view {
        _assertMade(IVault.deposit.selector, "deposit");
        _assertMade(bytes4(0), "receive");
        _assertMade(IVault.withdraw.selector, "withdraw");
        _assertMade(IVault.burn.selector, "burn");
        _assertMade(IWorkers.register.selector, "register");
        _assertMade(IWorkers.setProfile.selector, "setProfile");
        _assertMade(IWorkers.addBond.selector, "addBond");
        _assertMade(IWorkers.setDuty.selector, "setDuty");
        _assertMade(IWorkers.retire.selector, "retire");
        _assertMade(IWorkers.unbond.selector, "unbond");
        _assertMade(ITasks.setParams.selector, "setParams");
        _assertMade(ITasks.setPaused.selector, "setPaused");
        _assertMade(ITasks.post.selector, "post");
        _assertMade(ITasks.join.selector, "join");
        _assertMade(ITasks.commit.selector, "commit");
        _assertMade(ITasks.commitBySig.selector, "commitBySig");
        _assertMade(ITasks.reveal.selector, "reveal");
        _assertMade(ITasks.submit.selector, "submit");
        _assertMade(ITasks.submitBySig.selector, "submitBySig");
        _assertMade(ILiveness.leave.selector, "leave");
        _assertMade(ILiveness.ping.selector, "ping");
        _assertMade(ILiveness.pong.selector, "pong");
        _assertMade(ILiveness.evict.selector, "evict");
        _assertMade(ISettlement.cancel.selector, "cancel");
        _assertMade(ISettlement.settle.selector, "settle");
        _assertMade(ISettlement.settleShares.selector, "settleShares");
        _assertMade(ISettlement.expire.selector, "expire");
        _assertMade(IDisputes.draw.selector, "draw");
        _assertMade(IDisputes.auditCommit.selector, "auditCommit");
        _assertMade(IDisputes.open.selector, "open");
        _assertMade(IDisputes.auditReveal.selector, "auditReveal");
        _assertMade(IDisputes.scoreReveal.selector, "scoreReveal");
        _assertMade(IDisputes.challenge.selector, "challenge");
        _assertMade(IDisputes.challengeUnserved.selector, "challengeUnserved");
        _assertMade(IDisputes.serve.selector, "serve");
        _assertMade(IDisputes.drawReferees.selector, "drawReferees");
        _assertMade(IDisputes.refereeCommit.selector, "refereeCommit");
        _assertMade(IDisputes.refereeReveal.selector, "refereeReveal");
        _assertMade(IDisputes.resolve.selector, "resolve");
    }

    /// @notice rules T2, T9, T10, P1, P5, P6: tasks of every policy were settled, failed and cancelled.
    function test_EveryEndOfATaskIsReached() public view {
        for (uint256 p = 0; p <= uint256(type(IMarketTypes.Policy).max); ++p) {
            IMarketTypes.Policy policy = IMarketTypes.Policy(p);
            vm.assertGt(handler.ends(policy, IMarketTypes.TaskState.Settled), 0, "settled");
            vm.assertGt(handler.ends(policy, IMarketTypes.TaskState.Failed), 0, "failed");
            vm.assertGt(handler.ends(policy, IMarketTypes.TaskState.Cancelled), 0, "cancelled");
        }
    }

    /// @notice rules T10, A5, A7, D4, D5, P6: tasks failed for every reason.
    function test_EveryFailureIsReached() public view {
        for (uint256 r = 0; r <= uint256(type(IMarketTypes.Failure).max); ++r) {
            vm.assertGt(_failures[IMarketTypes.Failure(r)], 0, string.concat("failure ", vm.toString(r)));
        }
    }

    /// @notice rules D4, D5, D6, D7: disputes ended in every way.
    function test_EveryVerdictIsReached() public view {
        vm.assertGt(handler.verdicts(IMarketTypes.DisputeState.Upheld), 0, "upheld");
        vm.assertGt(handler.verdicts(IMarketTypes.DisputeState.Rejected), 0, "rejected");
        vm.assertGt(handler.verdicts(IMarketTypes.DisputeState.Dismissed), 0, "dismissed");
        vm.assertGt(handler.verdicts(IMarketTypes.DisputeState.Inconclusive), 0, "inconclusive");
        vm.assertGt(handler.verdicts(IMarketTypes.DisputeState.Void), 0, "void");
    }

    function _assertMade(bytes4 selector, string memory name) private view {
        vm.assertGt(handler.made(selector), 0, name);
    }
}
