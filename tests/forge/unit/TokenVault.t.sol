// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {OddToken} from "../../../contracts/mocks/OddToken.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Deposits and withdrawals in a token, under each of its bad habits.
contract TokenVaultTest is TaskDriver {
    uint256 private constant KEY = 0x0DD;
    uint256 private constant STEPS = 24;

    OddToken private _token;
    address private _holder;

    function setUp() public override {
        _token = new OddToken();
        market = _deploy(address(_token), _params());
        _holder = vm.addr(KEY);
    }

    /// @dev Rules V1, V3: whatever the token does, credited is what arrived.
    function testFuzz_depositIsCreditedByWhatArrived(uint8 habit, uint96 amount) external {
        OddToken.Habit bad = _habit(habit);
        _endow(_holder, 2 * uint256(amount));
        _token.setHabit(bad);
        uint256 hundredth = uint256(amount) / 100;

        vm.prank(_holder);
        (bool done,) = address(market).call(abi.encodeCall(market.deposit, (amount)));

        vm.assertEq(done, bad != OddToken.Habit.False);
        uint256 arrived = !done ? 0 : bad == OddToken.Habit.Fee ? amount - hundredth : amount;
        uint256 left = 2 * uint256(amount) - (done ? amount : 0);
        if (bad == OddToken.Habit.Overcharge) left -= hundredth;
        _assertCredit(market, _holder, arrived);
        vm.assertEq(_token.balanceOf(address(market)), arrived);
        vm.assertEq(_token.balanceOf(_holder), left);
        _assertBalanced(market);
    }

    /// @dev Rules V1, V3: a withdrawal costs the others nothing, or is refused.
    function testFuzz_withdrawalCostsNobodyElse(uint8 habit, uint96 credit, uint96 asked) external {
        OddToken.Habit bad = _habit(habit);
        asked = uint96(_bound(asked, 0, credit));
        _depositTokens(_holder, credit);
        _depositTokens(STRANGER, type(uint96).max);
        _token.setHabit(bad);
        uint256 hundredth = uint256(asked) / 100;
        bool refused =
            bad == OddToken.Habit.False || (bad == OddToken.Habit.Overcharge && hundredth > 0);

        vm.prank(_holder);
        (bool done,) = address(market).call(abi.encodeCall(market.withdraw, (_holder, asked)));

        vm.assertEq(done, !refused);
        uint256 paid = refused ? 0 : asked;
        _assertCredit(market, _holder, credit - paid);
        _assertCredit(market, STRANGER, type(uint96).max);
        vm.assertEq(_token.balanceOf(_holder), bad == OddToken.Habit.Fee ? paid - hundredth : paid);
        _assertBalanced(market);
    }

    /// @dev Rules V1, V3: over any run of deposits, withdrawals and changing habits, the market holds
    /// what it owes.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_neverInsolvent(uint256 seed) external {
        address[3] memory people = [_holder, STRANGER, CHALLENGER];
        for (uint256 i = 0; i < people.length; ++i) _endow(people[i], type(uint96).max);
        for (uint256 step = 0; step < STEPS; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            address who = people[seed % 3];
            uint256 amount = (seed >> 32) % (1 ether);
            _token.setHabit(_habit(uint8(seed >> 8)));
            bytes memory call = (seed >> 16) % 2 == 0
                ? abi.encodeCall(market.deposit, (amount))
                : abi.encodeCall(market.withdraw, (who, amount));
            vm.prank(who);
            (bool done,) = address(market).call(call);
            done;

            (uint256 held, uint256 owed) = market.solvency();
            uint256 credits = _credit(market, _holder) + _credit(market, STRANGER) + _credit(market, CHALLENGER);
            vm.assertEq(owed, credits, "owed");
            vm.assertEq(held, owed, "held");
        }
    }

    /// @dev Rule V3: a token that answers false is refused by name.
    function test_falseTokenIsRefused() external {
        _endow(_holder, 1 ether);
        _token.setHabit(OddToken.Habit.False);

        _refused(
            _holder,
            abi.encodeCall(market.deposit, (1 ether)),
            abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(_token))
        );
    }

    /// @dev Rule V3: a token that takes more than was asked for is refused with both amounts.
    function test_overchargingTokenIsRefused() external {
        _depositTokens(_holder, 2 ether);
        _token.setHabit(OddToken.Habit.Overcharge);

        _refused(
            _holder,
            abi.encodeCall(market.withdraw, (_holder, 1 ether)),
            abi.encodeWithSelector(IVault.MarketTokenTookMore.selector, 1 ether, 1.01 ether)
        );
    }

    /// @dev Rule V7: a token market takes no value, by whatever way it comes.
    function test_valueIsRefused() external {
        bytes[4] memory calls = [
            abi.encodeCall(market.deposit, (0)),
            abi.encodeCall(market.register, (PROFILE, ENV_CLASS, 0)),
            abi.encodeCall(market.post, (_terms(Policy.Replicate))),
            bytes("")
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.deal(STRANGER, 1 ether);
            vm.prank(STRANGER);
            (bool done, bytes memory reason) = address(market).call{value: 1 ether}(calls[i]);

            vm.assertFalse(done);
            vm.assertEq(reason, abi.encodeWithSelector(IVault.MarketWrongValue.selector, 1 ether, 0));
        }
    }

    /// @dev Rule V7: a permit and a deposit come in one call.
    function test_permitAndDeposit() external {
        _token.mint(_holder, 5 ether);
        (uint8 v, bytes32 r, bytes32 s) = _permit(5 ether, _now() + 1);

        vm.prank(_holder);
        market.depositWithPermit(5 ether, _now() + 1, v, r, s);

        _assertCredit(market, _holder, 5 ether);
        vm.assertEq(_token.allowance(_holder, address(market)), 0);
    }

    /// @dev Rule V7: a permit that somebody else used first does no harm.
    function test_usedPermitDoesNoHarm() external {
        _token.mint(_holder, 5 ether);
        (uint8 v, bytes32 r, bytes32 s) = _permit(5 ether, _now() + 1);
        _token.permit(_holder, address(market), 5 ether, _now() + 1, v, r, s);

        vm.prank(_holder);
        market.depositWithPermit(5 ether, _now() + 1, v, r, s);

        _assertCredit(market, _holder, 5 ether);
    }

    /// @dev Rule V2: without an allowance a wrong permit moves nothing.
    function test_wrongPermitMovesNothing() external {
        _token.mint(_holder, 5 ether);

        _refused(
            _holder,
            abi.encodeCall(market.depositWithPermit, (5 ether, _now() + 1, 27, bytes32("r"), bytes32("s"))),
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(market), 0, 5 ether)
        );
    }

    /// @dev Rule V7: permit, deposit and join go into one call of many.
    function test_depositAndJoinInOneCall() external {
        _depositTokens(REQUESTER, CREDIT);
        TaskId id = _post(_terms(Policy.Replicate));
        _token.mint(_holder, STAKE);
        (uint8 v, bytes32 r, bytes32 s) = _permit(STAKE, _now() + 1);
        bytes[] memory calls = new bytes[](3);
        calls[0] = abi.encodeCall(market.depositWithPermit, (STAKE, _now() + 1, v, r, s));
        calls[1] = abi.encodeCall(market.register, (PROFILE, ENV_CLASS, 0));
        calls[2] = abi.encodeCall(market.join, (id, CARD, new bytes32[](0)));

        vm.prank(_holder);
        (bool done,) = address(market).call(abi.encodeWithSignature("multicall(bytes[])", calls));

        vm.assertTrue(done);
        vm.assertEq(market.slot(id, 0).worker, _holder);
        _assertCredit(market, _holder, 0);
        _assertState(market, id, TaskState.Running);
    }

    function _habit(uint8 number) private pure returns (OddToken.Habit) {
        return OddToken.Habit(number % (uint8(type(OddToken.Habit).max) + 1));
    }

    function _endow(address who, uint256 amount) private {
        _token.mint(who, amount);
        vm.prank(who);
        _token.approve(address(market), type(uint256).max);
    }

    function _depositTokens(address who, uint256 amount) private {
        _endow(who, amount);
        vm.prank(who);
        market.deposit(amount);
    }

    function _permit(uint256 amount, uint256 deadline) private view returns (uint8, bytes32, bytes32) {
        bytes32 kind = keccak256(
            "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
        );
        bytes32 message = keccak256(abi.encode(kind, _holder, address(market), amount, 0, deadline));
        return vm.sign(KEY, keccak256(abi.encodePacked(hex"1901", _token.DOMAIN_SEPARATOR(), message)));
    }
}
