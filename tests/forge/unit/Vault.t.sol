// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {HostileReceiver} from "../../../contracts/mocks/HostileReceiver.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Deposits and withdrawals in the chain's own currency.
contract VaultTest is TaskDriver {
    event Deposited(address indexed account, uint256 amount);
    event Withdrawn(address indexed account, address indexed to, uint256 amount);

    /// @dev Rule V2: a deposit is credited to its sender, to the unit.
    function testFuzz_depositIsCredited(uint96 amount) external {
        vm.assume(amount != 0);
        vm.deal(STRANGER, amount);

        vm.expectEmit(address(market));
        emit Deposited(STRANGER, amount);
        vm.prank(STRANGER);
        market.deposit{value: amount}(amount);

        _assertCredit(market, STRANGER, amount);
        _assertBalanced(market);
    }

    /// @dev Rule V2: value that comes without a call is a deposit too.
    function test_plainValueIsCredited() external {
        vm.deal(STRANGER, 3 ether);
        vm.prank(STRANGER);
        (bool sent,) = address(market).call{value: 3 ether}("");

        vm.assertTrue(sent);
        _assertCredit(market, STRANGER, 3 ether);
        _assertBalanced(market);
    }

    /// @dev Rule V2: nothing is credited for nothing.
    function test_depositOfNothing() external {
        vm.prank(STRANGER);
        market.deposit(0);

        _assertCredit(market, STRANGER, 0);
    }

    /// @dev Rule V3: an announced amount must come along.
    function testFuzz_depositOfAnotherAmountIsRefused(uint96 sent, uint96 announced) external {
        vm.assume(sent != announced);
        vm.deal(STRANGER, sent);

        vm.expectRevert(abi.encodeWithSelector(IVault.MarketWrongValue.selector, sent, announced));
        vm.prank(STRANGER);
        market.deposit{value: sent}(announced);
    }

    /// @dev Rule V3: the chain's own currency knows no permits.
    function test_permitWithoutTokenIsRefused() external {
        _refused(
            STRANGER,
            abi.encodeCall(market.depositWithPermit, (1, 1, 27, 0, 0)),
            abi.encodeWithSelector(IVault.MarketNotToken.selector)
        );
    }

    /// @dev Rule V2: credit can be withdrawn to any receiver, in parts, to the last unit.
    function testFuzz_withdrawPaysTheReceiver(uint96 deposited, uint96 withdrawn) external {
        withdrawn = uint96(_bound(withdrawn, 0, deposited));
        address receiver = address(0xBEEF);
        _deposit(market, STRANGER, deposited);

        vm.expectEmit(address(market));
        emit Withdrawn(STRANGER, receiver, withdrawn);
        vm.prank(STRANGER);
        market.withdraw(receiver, withdrawn);

        vm.assertEq(receiver.balance, withdrawn);
        _assertCredit(market, STRANGER, deposited - withdrawn);
        _assertBalanced(market);
    }

    /// @dev Rule V2: nobody withdraws more than its credit.
    function testFuzz_withdrawingMoreIsRefused(uint96 deposited, uint256 excess) external {
        uint256 asked = _bound(excess, uint256(deposited) + 1, type(uint256).max);
        _deposit(market, STRANGER, deposited);

        _refused(
            STRANGER,
            abi.encodeCall(market.withdraw, (STRANGER, asked)),
            abi.encodeWithSelector(IVault.MarketInsufficientCredit.selector, STRANGER, deposited, asked)
        );
    }

    /// @dev Rule V4: money is not sent where nobody could ever fetch it.
    function test_withdrawToNobodyIsRefused() external {
        _deposit(market, STRANGER, 1 ether);
        address[2] memory nobody = [address(0), address(market)];

        for (uint256 i = 0; i < nobody.length; ++i) {
            _refused(
                STRANGER,
                abi.encodeCall(market.withdraw, (nobody[i], 1 ether)),
                abi.encodeWithSelector(IVault.MarketTransferFailed.selector, nobody[i], 1 ether)
            );
        }
        _assertCredit(market, STRANGER, 1 ether);
    }

    /// @dev Rule V4: a receiver that refuses keeps its credit and harms nobody else.
    function test_refusingReceiverKeepsItsCredit() external {
        HostileReceiver receiver = new HostileReceiver();
        receiver.setMood(HostileReceiver.Mood.Refuse, address(0), "");
        _deposit(market, STRANGER, 1 ether);

        _refused(
            STRANGER,
            abi.encodeCall(market.withdraw, (address(receiver), 1 ether)),
            abi.encodeWithSelector(IVault.MarketTransferFailed.selector, address(receiver), 1 ether)
        );
        _assertCredit(market, STRANGER, 1 ether);
        vm.prank(CHALLENGER);
        market.withdraw(CHALLENGER, CREDIT);
        vm.assertEq(CHALLENGER.balance, CREDIT);
    }

    /// @dev Rule V4: a receiver that re-enters finds the door closed and gets what it asked for once.
    function test_reenteringReceiverIsPaidOnce() external {
        HostileReceiver receiver = new HostileReceiver();
        bytes memory again = abi.encodeCall(market.withdraw, (address(receiver), 1 ether));
        receiver.setMood(HostileReceiver.Mood.Reenter, address(market), again);
        vm.deal(address(this), 3 ether);
        receiver.act{value: 3 ether}(address(market), 3 ether, abi.encodeCall(market.deposit, (3 ether)));

        receiver.act(address(market), 0, again);

        vm.assertFalse(receiver.reentered());
        vm.assertEq(address(receiver).balance, 1 ether);
        _assertCredit(market, address(receiver), 2 ether);
    }

    /// @dev Rule P4: anyone may send burned money to where nobody can use it.
    function test_burnSendsWhatWasBurned() external {
        TaskId id = _running(_terms(Policy.Replicate));
        _passDeadline(id);
        _expire(id);
        _assertCredit(market, BURN, PENALTY);

        vm.prank(STRANGER);
        market.burn();

        vm.assertEq(BURN.balance, PENALTY);
        _assertCredit(market, BURN, 0);
        _assertBalanced(market);
    }

    /// @dev Rule V7: value sent along is credited first, and what is left of it stays credited.
    function test_valueRidesAlong() external {
        Terms memory terms = _terms(Policy.Replicate);
        vm.deal(STRANGER, 10 ether);
        vm.prank(STRANGER);
        TaskId id = market.post{value: 3 ether}(terms);
        _assertCredit(market, STRANGER, 3 ether - REWARD);

        address newcomer = address(0x4EC0);
        vm.deal(newcomer, 10 ether);
        vm.prank(newcomer);
        market.register{value: 2 ether}(PROFILE, ENV_CLASS, 0.5 ether);
        _assertCredit(market, newcomer, 1.5 ether);
        vm.prank(newcomer);
        market.addBond{value: 0.25 ether}(1 ether);
        _assertCredit(market, newcomer, 0.75 ether);
        vm.prank(newcomer);
        market.join{value: 1 ether}(id, CARD, new bytes32[](0));
        _assertCredit(market, newcomer, 1.75 ether - STAKE);
        vm.assertEq(market.task(id).locked, REWARD + STAKE);
        _assertBalanced(market);
    }

    /// @dev Rule V2: what is not credited cannot be locked.
    function test_postWithoutCreditIsRefused() external {
        _refused(
            STRANGER,
            abi.encodeCall(market.post, (_terms(Policy.Replicate))),
            abi.encodeWithSelector(IVault.MarketInsufficientCredit.selector, STRANGER, 0, REWARD)
        );
    }
}
