// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {IWorkers} from "../../../contracts/interfaces/IWorkers.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice The register, the bonds and the pools.
contract WorkersTest is TaskDriver {
    address private constant NEWCOMER = address(0x4EC0);

    function setUp() public override {
        super.setUp();
        _deposit(market, NEWCOMER, CREDIT);
    }

    /// @dev Rule W1: a worker without a bond is registered and in no pool.
    function test_registerWithoutBond() external {
        _register(market, NEWCOMER, 0);

        Worker memory worker = market.worker(NEWCOMER);
        vm.assertEq(worker.envClass, ENV_CLASS);
        vm.assertEq(worker.profile, PROFILE);
        vm.assertEq(worker.bond, 0);
        vm.assertEq(worker.poolIndex, 0);
        vm.assertEq(market.poolSize(ENV_CLASS), AUDITORS);
    }

    /// @dev Rule W2: any bond from the seat bond on puts a worker into the pool of its class.
    function testFuzz_registerWithBond(uint96 bond) external {
        bond = uint96(_bound(bond, BOND, CREDIT));

        _register(market, NEWCOMER, bond);

        Worker memory worker = market.worker(NEWCOMER);
        vm.assertEq(worker.bond, bond);
        vm.assertEq(worker.poolIndex, AUDITORS + 1);
        vm.assertEq(worker.since, _now());
        vm.assertEq(market.poolMember(ENV_CLASS, AUDITORS), NEWCOMER);
        vm.assertEq(market.poolSize(ENV_CLASS), AUDITORS + 1);
        _assertCredit(market, NEWCOMER, CREDIT - bond);
    }

    /// @dev Rule W2: a lower bond is refused with both amounts.
    function testFuzz_lowBondIsRefused(uint96 bond) external {
        bond = uint96(_bound(bond, 1, BOND - 1));

        _refused(
            NEWCOMER,
            abi.encodeCall(market.register, (PROFILE, ENV_CLASS, bond)),
            abi.encodeWithSelector(IWorkers.MarketBondTooLow.selector, bond, BOND)
        );
    }

    /// @dev Rule W2: a bond comes out of the worker's own credit.
    function test_bondBeyondCreditIsRefused() external {
        _refused(
            NEWCOMER,
            abi.encodeCall(market.register, (PROFILE, ENV_CLASS, uint96(CREDIT) + 1)),
            abi.encodeWithSelector(IVault.MarketInsufficientCredit.selector, NEWCOMER, CREDIT, CREDIT + 1)
        );
    }

    /// @dev Rule W1: one registration per account, with a class and a profile.
    function test_wrongRegistrationsAreRefused() external {
        bytes memory zero = abi.encodeWithSelector(IWorkers.MarketZeroDigest.selector);
        _refused(NEWCOMER, abi.encodeCall(market.register, (PROFILE, 0, 0)), zero);
        _refused(NEWCOMER, abi.encodeCall(market.register, (0, ENV_CLASS, 0)), zero);
        _refused(
            _worker(0),
            abi.encodeCall(market.register, (PROFILE, ENV_CLASS, 0)),
            abi.encodeWithSelector(IWorkers.MarketAlreadyRegistered.selector, _worker(0))
        );
    }

    /// @dev Rule W1: only a registered worker has a profile, duties, a bond to add and a place to leave.
    function test_strangersAreRefused() external {
        bytes memory unknown = abi.encodeWithSelector(IWorkers.MarketNotRegistered.selector, STRANGER);

        _refused(STRANGER, abi.encodeCall(market.setProfile, (PROFILE)), unknown);
        _refused(STRANGER, abi.encodeCall(market.addBond, (1)), unknown);
        _refused(STRANGER, abi.encodeCall(market.setDuty, (0, 0, 0)), unknown);
        _refused(STRANGER, abi.encodeCall(market.retire, ()), unknown);
        _refused(
            STRANGER,
            abi.encodeCall(market.unbond, ()),
            abi.encodeWithSelector(IWorkers.MarketNotRetired.selector, STRANGER)
        );
    }

    /// @dev Rule W1: a profile can be replaced, but not by nothing.
    function test_setProfile() external {
        vm.prank(_worker(0));
        market.setProfile(keccak256("new"));

        vm.assertEq(market.worker(_worker(0)).profile, keccak256("new"));
        _refused(
            _worker(0),
            abi.encodeCall(market.setProfile, (0)),
            abi.encodeWithSelector(IWorkers.MarketZeroDigest.selector)
        );
    }

    /// @dev Rule W2: adding to a bond keeps the place; adding to none takes one; nothing adds nothing.
    function test_addBond() external {
        _deposit(market, _auditor(0), 2 ether);
        vm.prank(_auditor(0));
        market.addBond(2 ether);
        vm.assertEq(market.worker(_auditor(0)).bond, AUDITOR_BOND + 2 ether);
        vm.assertEq(market.worker(_auditor(0)).poolIndex, 1);
        _refused(
            _auditor(0),
            abi.encodeCall(market.addBond, (0)),
            abi.encodeWithSelector(IWorkers.MarketBondTooLow.selector, AUDITOR_BOND + 2 ether, BOND)
        );

        vm.prank(_worker(0));
        market.addBond(BOND);
        vm.assertEq(market.worker(_worker(0)).poolIndex, AUDITORS + 1);
        _assertCredit(market, _worker(0), CREDIT - BOND);
    }

    /// @dev Rule W3: the last of the pool takes the place of the one that retires.
    function test_retireLeavesNoHole() external {
        address last = _auditor(AUDITORS - 1);

        vm.prank(_auditor(3));
        market.retire();

        vm.assertEq(market.poolSize(ENV_CLASS), AUDITORS - 1);
        vm.assertEq(market.poolMember(ENV_CLASS, 3), last);
        vm.assertEq(market.worker(last).poolIndex, 4);
        Worker memory retired = market.worker(_auditor(3));
        vm.assertEq(retired.poolIndex, 0);
        vm.assertEq(retired.envClass, 0);
        vm.assertEq(retired.unbondsAt, _now() + 7 days);
    }

    /// @dev Rule W3: the last of the pool leaves, and all others keep their places.
    function test_lastOfThePoolRetires() external {
        vm.prank(_auditor(AUDITORS - 1));
        market.retire();

        vm.assertEq(market.poolSize(ENV_CLASS), AUDITORS - 1);
        vm.assertEq(market.worker(_auditor(AUDITORS - 1)).poolIndex, 0);
        vm.assertEq(market.worker(_auditor(AUDITORS - 2)).poolIndex, AUDITORS - 1);
    }

    /// @dev Rule W3: the bond comes back after the delay, and until then nobody registers again.
    function test_unbondAfterTheDelay() external {
        vm.prank(_auditor(0));
        market.retire();
        uint256 until = _now() + 7 days;
        bytes memory unbonding = abi.encodeWithSelector(IWorkers.MarketUnbonding.selector, _auditor(0), until);
        vm.warp(until - 1);
        _refused(_auditor(0), abi.encodeCall(market.unbond, ()), unbonding);
        _refused(_auditor(0), abi.encodeCall(market.register, (PROFILE, ENV_CLASS, 0)), unbonding);

        vm.warp(until);
        vm.prank(_auditor(0));
        market.unbond();

        _assertCredit(market, _auditor(0), AUDITOR_BOND);
        vm.assertEq(market.worker(_auditor(0)).bond, 0);
        _register(market, _auditor(0), AUDITOR_BOND);
        vm.assertEq(market.worker(_auditor(0)).poolIndex, AUDITORS);
    }

    /// @dev Rule W3: who never had a bond has nothing to wait for.
    function test_retireWithoutBond() external {
        vm.prank(_worker(0));
        market.retire();
        vm.prank(_worker(0));
        market.unbond();

        vm.assertEq(market.poolSize(ENV_CLASS), AUDITORS);
        _assertCredit(market, _worker(0), CREDIT);
        vm.assertEq(market.worker(_worker(0)).unbondsAt, 0);
    }

    /// @dev Rule W3: a seat holds its member's bond until it is closed, however long that takes.
    function test_unbondWaitsForSeats() external {
        Terms memory terms = _terms(Policy.Audit);
        (terms.auditFor, terms.answerFor) = (30 days, 7 days);
        TaskId id = _auditing(terms);
        address member = _seat(id, 0).member;
        vm.prank(member);
        market.retire();
        _wait(7 days);

        _refused(
            member,
            abi.encodeCall(market.unbond, ()),
            abi.encodeWithSelector(IWorkers.MarketBondInUse.selector, member, BOND)
        );
    }

    /// @dev Rule W2: a worker is drawn for no less than its duty says.
    function test_dutyKeepsOutOfTheDraw() external {
        uint256[3] memory duties = [uint256(FEE) + 1, 1 hours + 1, 10 minutes + 1];
        for (uint256 i = 0; i + 1 < AUDITORS; ++i) {
            uint256 which = i % 3;
            vm.prank(_auditor(i));
            market.setDuty(
                which == 0 ? uint96(duties[0]) : 0,
                which == 1 ? uint32(duties[1]) : 0,
                which == 2 ? uint32(duties[2]) : 0
            );
        }
        vm.prank(_auditor(AUDITORS - 1));
        market.setDuty(FEE, 1 hours, 10 minutes);
        _wait(1);

        TaskId id = _auditing(_terms(Policy.Audit));

        vm.assertEq(_seats(id), 1);
        vm.assertEq(_seat(id, 0).member, _auditor(AUDITORS - 1));
        Worker memory worker = market.worker(_auditor(AUDITORS - 1));
        vm.assertEq(worker.minFee, FEE);
        vm.assertEq(worker.minAuditFor, 1 hours);
        vm.assertEq(worker.minAnswerFor, 10 minutes);
    }
}
