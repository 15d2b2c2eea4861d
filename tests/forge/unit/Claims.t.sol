// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {ContractWallet} from "../../../contracts/mocks/ContractWallet.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Commitments, reveals, submissions, and their signatures.
contract ClaimsTest is TaskDriver {
    bytes32 private constant COMMITMENT_TYPE =
        keccak256("Commitment(uint256 task,uint256 slot,bytes32 commitment,uint256 deadline)");
    bytes32 private constant SUBMISSION_TYPE = keccak256(
        "Submission(uint256 task,uint256 slot,bytes32 result,bytes32 root,bytes32 shares,uint256 deadline)"
    );

    /// @dev Rule T6: the market and its users compute the same commitment.
    function testFuzz_commitmentOf(uint256 task, address worker, bytes32 result, bytes32 root) external view {
        TaskId id = TaskId.wrap(task);

        bytes32 commitment = market.commitmentOf(id, worker, SALT, result, root);

        vm.assertEq(commitment, _commitment(id, worker, Claim(result, root, 0)));
    }

    /// @dev Rule T6: a commitment is kept, and the last of them starts the reveals.
    function test_commitsStartTheReveals() external {
        TaskId id = _running(_terms(Policy.Replicate, 2));

        _commit(id, 0, _claim());
        vm.assertEq(market.slot(id, 0).digest, _commitment(id, _worker(0), _claim()));
        vm.assertEq(market.task(id).answered, 1);
        _assertState(market, id, TaskState.Running);
        _commit(id, 1, _claim());

        _assertState(market, id, TaskState.Revealing);
        vm.assertEq(market.task(id).deadline, _now() + 10 minutes);
    }

    /// @dev Rules T6, C1: a slot's holder commits once, in time, to something.
    function test_wrongCommitmentsAreRefused() external {
        TaskId id = _running(_terms(Policy.Replicate, 2));
        bytes32 commitment = keccak256("commitment");

        _refusedCommit(id, 0, 0, abi.encodeWithSelector(ITasks.MarketZeroCommitment.selector, id));
        _refusedCommit(id, 1, commitment, _notHolder(id, 1));
        _refusedCommit(id, 2, commitment, _notHolder(id, 2));
        _commit(id, 0, _claim());
        _refusedCommit(id, 0, commitment, abi.encodeWithSelector(MarketAlreadyAnswered.selector, id, 0));
        uint256 trainBy = market.task(id).deadline;
        vm.warp(trainBy);
        _refusedCommit(id, 0, commitment, _tooLate(id, trainBy));
        TaskId audit = _running(_terms(Policy.Audit));
        _refusedCommit(audit, 0, commitment, _wrongPolicy(audit, Policy.Audit));
        TaskId open = _post(_terms(Policy.Replicate));
        _refusedCommit(open, 0, commitment, _unexpectedState(open, TaskState.Open));
    }

    /// @dev Rule T7: anyone relays a reveal; it leaves the digest of the claim.
    function test_revealLeavesTheClaim() external {
        TaskId id = _running(_terms(Policy.Replicate));
        _commit(id, 0, _claim());

        _reveal(id, 0, _claim());

        vm.assertEq(market.slot(id, 0).digest, keccak256(abi.encode(_claim())));
        vm.assertEq(market.task(id).revealed, 1);
        _assertState(market, id, TaskState.Revealing);
    }

    /// @dev Rule T6: what differs from the commitment in anything is no reveal; a copied commitment
    /// names another worker and cannot be revealed.
    function test_wrongRevealsAreRefused() external {
        TaskId id = _running(_terms(Policy.Replicate, 3));
        _commit(id, 0, _claim());
        bytes32 copied = _commitment(id, _worker(0), _claim());
        vm.prank(_worker(1));
        market.commit(id, 1, copied);
        _passDeadline(id);
        _expire(id);

        bytes memory wrong = abi.encodeWithSelector(ITasks.MarketWrongReveal.selector, id, 0);
        Claim memory claim = _claim();
        _refused(STRANGER, abi.encodeCall(market.reveal, (id, 0, 0, claim.result, claim.root)), wrong);
        _refused(STRANGER, abi.encodeCall(market.reveal, (id, 0, SALT, 0, claim.root)), wrong);
        _refused(STRANGER, abi.encodeCall(market.reveal, (id, 0, SALT, claim.result, 0)), wrong);
        _refusedReveal(id, 1, abi.encodeWithSelector(ITasks.MarketWrongReveal.selector, id, 1));
        _refusedReveal(id, 2, abi.encodeWithSelector(ITasks.MarketWrongReveal.selector, id, 2));
        _refusedReveal(id, 32, abi.encodeWithSelector(ITasks.MarketWrongReveal.selector, id, 32));
        _reveal(id, 0, claim);
        _refusedReveal(id, 0, abi.encodeWithSelector(MarketAlreadyAnswered.selector, id, 0));
        uint256 revealBy = market.task(id).deadline;
        vm.warp(revealBy);
        _refusedReveal(id, 1, _tooLate(id, revealBy));
    }

    /// @dev Rule T6: nothing is revealed while others may still copy it.
    function test_earlyRevealIsRefused() external {
        TaskId id = _running(_terms(Policy.Replicate, 2));
        _commit(id, 0, _claim());

        _refusedReveal(id, 0, _unexpectedState(id, TaskState.Running));
    }

    /// @dev Rule T8: the last submission fixes the claim and calls the panel.
    function test_submissionsCallThePanel() external {
        TaskId id = _running(_terms(Policy.Audit, 2));
        _submit(id, 0, _claim());
        _assertState(market, id, TaskState.Running);

        _submit(id, 1, _claim());

        _assertState(market, id, TaskState.Submitted);
        vm.assertEq(market.slot(id, 1).digest, keccak256(abi.encode(_claim())));
        Panel memory panel = market.panel(id, OWN_PANEL, 0);
        vm.assertEq(panel.drawBlock, vm.getBlockNumber() + 1);
        vm.assertEq(panel.calledAt, _now());
        vm.assertEq(panel.pool, AUDITORS);
        vm.assertEq(market.task(id).deadline, _now() + 1 hours);
    }

    /// @dev Rules T6, P1: shares are given where the terms say so, one per slot, of one whole at most.
    function test_wrongSharesAreRefused() external {
        Terms memory terms = _terms(Policy.Audit, 2);
        TaskId equal = _running(terms);
        terms.sharesAgreed = true;
        TaskId agreed = _running(terms);

        _refusedShares(equal, new uint16[](2));
        _refusedShares(agreed, new uint16[](0));
        _refusedShares(agreed, new uint16[](3));
        uint16[] memory shares = new uint16[](2);
        (shares[0], shares[1]) = (9_999, 2);
        _refusedShares(agreed, shares);
    }

    /// @dev Rule T6: under Replicate nothing is submitted in the open.
    function test_openSubmissionUnderReplicateIsRefused() external {
        TaskId id = _running(_terms(Policy.Replicate));

        _refused(
            _worker(0),
            abi.encodeCall(market.submit, (id, 0, bytes32("result"), bytes32("root"), new uint16[](0))),
            _wrongPolicy(id, Policy.Replicate)
        );
    }

    /// @dev Rule T7: a signed commitment may be relayed until its deadline's second.
    function test_commitBySignature() external {
        TaskId id = _running(_terms(Policy.Replicate));
        bytes32 commitment = _commitment(id, _worker(0), _claim());
        uint256 deadline = _now() + 60;
        bytes memory signature =
            _sign(WORKER_KEY, keccak256(abi.encode(COMMITMENT_TYPE, id, 0, commitment, deadline)));
        vm.warp(deadline - 1);

        vm.prank(STRANGER);
        market.commitBySig(id, 0, commitment, deadline, signature);

        vm.assertEq(market.slot(id, 0).digest, commitment);
    }

    /// @dev Rule T7: late, forged and misdirected signatures are refused.
    function test_wrongSignaturesAreRefused() external {
        TaskId id = _running(_terms(Policy.Replicate, 2));
        bytes32 commitment = keccak256("commitment");
        uint256 deadline = _now() + 60;
        bytes memory signature =
            _sign(WORKER_KEY, keccak256(abi.encode(COMMITMENT_TYPE, id, 0, commitment, deadline)));

        _refusedSignature(id, 1, commitment, deadline, signature, _wrongSignature(_worker(1)));
        _refusedSignature(id, 2, commitment, deadline, signature, _wrongSignature(address(0)));
        _refusedSignature(id, 0, keccak256("other"), deadline, signature, _wrongSignature(_worker(0)));
        bytes memory noSlot = abi.encodeWithSelector(MarketNotSlotHolder.selector, id, 32, STRANGER);
        _refusedSignature(id, 32, commitment, deadline, signature, noSlot);
        vm.warp(deadline);
        bytes memory late = abi.encodeWithSelector(ITasks.MarketSignatureExpired.selector, deadline);
        _refusedSignature(id, 0, commitment, deadline, signature, late);
    }

    /// @dev Rule T7: a signed submission may be relayed, with its shares.
    function test_submitBySignature() external {
        Terms memory terms = _terms(Policy.Audit);
        terms.sharesAgreed = true;
        TaskId id = _running(terms);
        uint16[] memory shares = new uint16[](1);
        shares[0] = 10_000;
        Claim memory claim = _claim();
        claim.shares = keccak256(abi.encodePacked(shares));
        uint256 deadline = _now() + 60;
        bytes memory signature = _sign(
            WORKER_KEY,
            keccak256(abi.encode(SUBMISSION_TYPE, id, 0, claim.result, claim.root, claim.shares, deadline))
        );

        vm.prank(STRANGER);
        market.submitBySig(id, 0, claim.result, claim.root, shares, deadline, signature);

        vm.assertEq(market.slot(id, 0).digest, keccak256(abi.encode(claim)));
    }

    /// @dev Rule T7: a contract wallet signs by its keeper.
    function test_contractWalletSigns() external {
        uint256 key = 0x4EE9;
        ContractWallet wallet = new ContractWallet(vm.addr(key));
        vm.deal(address(this), STAKE);
        wallet.act(address(market), 0, abi.encodeCall(market.register, (PROFILE, ENV_CLASS, 0)));
        TaskId id = _post(_terms(Policy.Audit));
        wallet.act{value: STAKE}(address(market), STAKE, abi.encodeCall(market.join, (id, CARD, new bytes32[](0))));
        Claim memory claim = _claim();
        uint256 deadline = _now() + 60;
        bytes32 message = keccak256(abi.encode(SUBMISSION_TYPE, id, 0, claim.result, claim.root, bytes32(0), deadline));

        market.submitBySig(id, 0, claim.result, claim.root, new uint16[](0), deadline, _sign(key, message));

        vm.assertEq(market.slot(id, 0).digest, keccak256(abi.encode(claim)));
        _assertState(market, id, TaskState.Submitted);
    }

    function _sign(uint256 key, bytes32 message) private view returns (bytes memory) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Trainyard"),
                keccak256("1"),
                block.chainid,
                address(market)
            )
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, keccak256(abi.encodePacked(hex"1901", domain, message)));
        return abi.encodePacked(r, s, v);
    }

    function _notHolder(TaskId id, uint256 slot) private pure returns (bytes memory) {
        return abi.encodeWithSelector(MarketNotSlotHolder.selector, id, slot, _worker(0));
    }

    function _wrongSignature(address signer) private pure returns (bytes memory) {
        return abi.encodeWithSelector(ITasks.MarketWrongSignature.selector, signer);
    }

    function _refusedCommit(TaskId id, uint256 slot, bytes32 commitment, bytes memory reason) private {
        _refused(_worker(0), abi.encodeCall(market.commit, (id, slot, commitment)), reason);
    }

    function _refusedReveal(TaskId id, uint256 slot, bytes memory reason) private {
        Claim memory claim = _claim();
        _refused(STRANGER, abi.encodeCall(market.reveal, (id, slot, SALT, claim.result, claim.root)), reason);
    }

    function _refusedShares(TaskId id, uint16[] memory shares) private {
        _refused(
            _worker(0),
            abi.encodeCall(market.submit, (id, 0, bytes32("result"), bytes32("root"), shares)),
            abi.encodeWithSelector(ISettlement.MarketWrongShares.selector, id)
        );
    }

    function _refusedSignature(
        TaskId id,
        uint256 slot,
        bytes32 commitment,
        uint256 deadline,
        bytes memory signature,
        bytes memory reason
    ) private {
        _refused(STRANGER, abi.encodeCall(market.commitBySig, (id, slot, commitment, deadline, signature)), reason);
    }
}
