// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice Whatever ends a task fits into a transaction, also at the limits of its terms. What comes
/// before the call is set up apart, so that its storage is cold.
abstract contract WorstCase is DisputeDriver {
    // Forge prints it with -vv.
    event log_named_uint(string key, uint256 val);

    uint8 internal constant SLOTS = 32;
    uint8 internal constant SEATS = 15;
    uint256 internal constant LIMIT = 15_000_000;
    uint256 private constant INTRINSIC = 21_000;

    TaskId internal task;

    function _measure(string memory name, bytes memory call) internal {
        uint256 left = gasleft();
        (bool done,) = address(market).call(call);
        uint256 used = left - gasleft() + INTRINSIC;
        vm.assertTrue(done, name);
        vm.assertLt(used, LIMIT, name);
        emit log_named_uint(name, used);
    }

    /// @dev Fills the pool up with members who may not be drawn, so that every probe is in vain.
    function _crowd(uint256 count) internal {
        for (uint256 i = 0; i < count; ++i) {
            address member = address(uint160(0xC0FFEE00) + uint160(i));
            _deposit(market, member, BOND);
            _register(market, member, BOND);
            vm.prank(member);
            market.setDuty(type(uint96).max, 0, 0);
        }
    }
}

contract JoinsGasTest is WorstCase {
    function setUp() public override {
        super.setUp();
        _enrol(SLOTS);
        task = _post(_terms(Policy.Replicate, SLOTS));
    }

    /// @dev Rule T3: all slots of the largest task are filled for less than one transaction may cost.
    function test_joins() external {
        uint256 left = gasleft();
        for (uint256 i = 0; i < SLOTS; ++i) _join(task, _worker(i));
        uint256 used = left - gasleft();

        _assertState(market, task, TaskState.Running);
        vm.assertLt(used, LIMIT);
        emit log_named_uint("32 joins", used);
    }
}

contract ReplicateGasTest is WorstCase {
    function setUp() public override {
        super.setUp();
        _enrol(SLOTS);
        // A bare majority: comparing all the others takes longest.
        Claim[] memory claims = _entries(SLOTS);
        for (uint256 i = SLOTS / 2 - 1; i < SLOTS; ++i) claims[i] = _claim();
        task = _revealing(_terms(Policy.Replicate, SLOTS), claims);
        for (uint256 i = 0; i < SLOTS; ++i) _reveal(task, i, claims[i]);
    }

    /// @dev Rules C2, T9: the largest replicated task can be settled.
    function test_settleReplicas() external {
        _measure("settle, 32 replicas", abi.encodeCall(market.settle, (task)));

        _assertState(market, task, TaskState.Settled);
        _assertCredit(market, _worker(SLOTS - 1), CREDIT + REWARD);
    }
}

contract ContestGasTest is WorstCase {
    function setUp() public override {
        super.setUp();
        _enrol(SLOTS);
        for (uint256 i = AUDITORS; i < SEATS; ++i) {
            _deposit(market, _auditor(i), AUDITOR_BOND);
            _register(market, _auditor(i), AUDITOR_BOND);
        }
        _wait(1);
        Terms memory terms = _terms(Policy.Contest, SLOTS);
        terms.audits = SEATS;
        uint32[][] memory rows = new uint32[][](SEATS);
        for (uint256 i = 0; i < SEATS; ++i) {
            rows[i] = new uint32[](SLOTS);
            // Descending scores take longest to sort.
            for (uint256 j = 0; j < SLOTS; ++j) rows[i][j] = uint32(1_000 - i);
        }
        task = _scored(terms, rows);
    }

    /// @dev Rules C2, P5: the largest contest can be settled.
    function test_settleContest() external {
        _measure("settle, contest of 32 entries and 15 evaluators", abi.encodeCall(market.settle, (task)));

        _assertState(market, task, TaskState.Settled);
        _assertCredit(market, _worker(0), CREDIT + uint256(SLOTS) * REWARD);
    }
}

contract DrawGasTest is WorstCase {
    function setUp() public override {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        market = _deploy();
        _deposit(market, REQUESTER, CREDIT);
        _enrol(SLOTS);
        _crowd(200);
        _wait(1);
        Terms memory terms = _terms(Policy.Audit, SLOTS);
        (terms.audits, terms.segments) = (SEATS, 2 * uint32(SEATS));
        task = _submitted(terms);
        vm.roll(vm.getBlockNumber() + 2);
    }

    /// @dev Rules C2, A5: a draw that finds nobody in a large pool still goes through.
    function test_drawInVain() external {
        _measure("draw, 15 seats in a pool of 200 unwilling", abi.encodeCall(market.draw, (task)));

        vm.assertEq(_seats(task), 0);
        _assertState(market, task, TaskState.Window);
    }
}

/// @dev The largest task under the largest committees.
abstract contract LargestDispute is WorstCase {
    uint32 internal constant SEGMENT = 2;
    uint8 internal constant REFEREES = 13;

    function setUp() public virtual override {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        Params memory p = _params();
        (p.referees, p.escalation) = (REFEREES, SEATS);
        market = _deploy(NATIVE, p);
        _deposit(market, REQUESTER, CREDIT);
        _deposit(market, CHALLENGER, CREDIT);
        _enrol(SLOTS);
        // Up to 32 members all are probed, so that none of these is missed.
        _bondAuditors(2);
        _bondReferees();
        _wait(1);
        Terms memory terms = _terms(Policy.Audit, SLOTS);
        terms.auditFee = BOND / (REFEREES + SEATS);
        task = _audited(terms);
        _challenge(task, SEGMENT);
        _hear(task, SEGMENT, _divided());
        _resolve(task, SEGMENT);
    }

    function _bondReferees() internal virtual;

    function _unanimous(uint256 count) internal pure returns (bytes32[] memory answers) {
        answers = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) answers[i] = TRUE;
    }

    /// @dev Every referee says something else.
    function _divided() private pure returns (bytes32[] memory answers) {
        answers = new bytes32[](REFEREES);
        for (uint256 i = 0; i < REFEREES; ++i) answers[i] = keccak256(abi.encode("referee", i));
    }
}

contract VerdictGasTest is LargestDispute {
    function setUp() public override {
        super.setUp();
        _hear(task, SEGMENT, _unanimous(SEATS));
    }

    function _bondReferees() internal override {
        for (uint256 i = 2; i < 30; ++i) {
            _deposit(market, _auditor(i), AUDITOR_BOND);
            _register(market, _auditor(i), AUDITOR_BOND);
        }
    }

    /// @dev Rules C2, D5: the verdict of the largest committees over the largest task can be carried out.
    function test_resolveEscalated() external {
        _measure("resolve, 32 slots and 13 + 15 referees", abi.encodeCall(market.resolve, (task, SEGMENT)));

        _assertDispute(market, task, SEGMENT, DisputeState.Upheld);
        _assertState(market, task, TaskState.Failed);
    }
}

contract RefereesGasTest is LargestDispute {
    function setUp() public override {
        super.setUp();
        vm.roll(vm.getBlockNumber() + 2);
        _passDispute(task, SEGMENT);
    }

    function _bondReferees() internal override {
        for (uint256 i = 2; i < 17; ++i) {
            _deposit(market, _auditor(i), AUDITOR_BOND);
            _register(market, _auditor(i), AUDITOR_BOND);
        }
        _crowd(15);
    }

    /// @dev Rules C2, D6: a committee that cannot be drawn is given up within one transaction.
    function test_dismissEscalated() external {
        _measure("draw of referees in vain", abi.encodeCall(market.drawReferees, (task, SEGMENT)));

        _assertDispute(market, task, SEGMENT, DisputeState.Dismissed);
    }
}
