// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Which segments are drawn. All goes through real draws, by the hash of their block. (rule A4)
contract SegmentsTest is TaskDriver {
    uint256 private constant POOL = 20;

    function setUp() public override {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        market = _deploy();
        _deposit(market, REQUESTER, CREDIT);
        _enrol(1);
        _bondAuditors(POOL);
        _wait(1);
    }

    /// @dev Rule A4: drawn segments are distinct and never neighbours, as many as the trace bears.
    function testFuzz_drawnSegmentsKeepApart(bytes32 hash, uint32 length, uint8 audits) external {
        vm.assume(hash != 0);
        length = uint32(_bound(length, 1, 64));
        audits = uint8(_bound(audits, 1, 15));
        TaskId id = _called(length, audits);

        uint32[] memory segments = _drawWith(id, hash);

        uint256 most = length < 2 ? 1 : length / 2;
        vm.assertEq(segments.length, audits < most ? audits : most);
        for (uint256 i = 0; i < segments.length; ++i) {
            vm.assertLt(segments[i], length);
            for (uint256 j = 0; j < i; ++j) {
                uint256 gap = (uint256(segments[i]) + length - segments[j]) % length;
                vm.assertGe(gap, 2, "neighbour before");
                vm.assertLe(gap, length - 2, "neighbour behind");
            }
        }
    }

    /// @dev Rule A4: the longest trace is drawn from like any other.
    function testFuzz_longestTrace(bytes32 hash) external {
        vm.assume(hash != 0);
        TaskId id = _called(type(uint32).max - 1, 15);

        uint32[] memory segments = _drawWith(id, hash);

        vm.assertEq(segments.length, 15);
        for (uint256 i = 0; i < 15; ++i) vm.assertLt(segments[i], type(uint32).max - 1);
    }

    /// @dev Rule A4: over many draws each segment comes up as often as any other.
    function test_marginalsAreUniform() external {
        _assertUniform(9, 2, 2_000);
    }

    /// @dev Rule A4: so it is where hardly any choice is left.
    function test_marginalsOfACrowdedTrace() external {
        _assertUniform(9, 4, 1_500);
    }

    /// @dev Rule A4: so it is at the fullest, where every second segment is drawn.
    function test_marginalsOfAFullTrace() external {
        _assertUniform(6, 3, 1_500);
    }

    /// @dev Rule A4: so it is for a single audit.
    function test_marginalsOfASingleAudit() external {
        _assertUniform(7, 1, 2_000);
    }

    /// @dev Rule A4: of two drawn segments neither gives away where the other may be.
    function test_gapsAreUniform() external {
        uint32 length = 9;
        TaskId id = _called(length, 2);
        uint256[] memory counts = new uint256[](length - 3);
        uint256 called = vm.snapshotState();
        for (uint256 i = 0; i < 1_500; ++i) {
            uint32[] memory segments = _drawWith(id, keccak256(abi.encode("gap", i)));
            ++counts[(segments[1] + length - segments[0]) % length - 2];
            vm.revertToState(called);
        }

        _assertEven(counts, 1_500, 1);
    }

    function _assertUniform(uint32 length, uint8 audits, uint256 draws) private {
        TaskId id = _called(length, audits);
        uint256[] memory counts = new uint256[](length);
        uint256 called = vm.snapshotState();
        for (uint256 i = 0; i < draws; ++i) {
            uint32[] memory segments = _drawWith(id, keccak256(abi.encode(length, audits, i)));
            for (uint256 j = 0; j < segments.length; ++j) ++counts[segments[j]];
            vm.revertToState(called);
        }

        _assertEven(counts, draws, audits);
    }

    /// @dev Each of `draws` draws counts `hits` of the places. Each count stays within four standard
    /// deviations of what all have in the mean. The hashes are fixed: a red test is no accident.
    function _assertEven(uint256[] memory counts, uint256 draws, uint256 hits) private pure {
        uint256 places = counts.length;
        uint256 mean = draws * hits / places;
        // (count - mean)^2 <= 16 * draws * p * (1 - p), with p = hits / places.
        uint256 bound = 16 * draws * hits * (places - hits) / (places * places);
        uint256 total = 0;
        for (uint256 i = 0; i < places; ++i) {
            uint256 off = counts[i] > mean ? counts[i] - mean : mean - counts[i];
            vm.assertLe(off * off, bound, "a place is preferred or spared");
            total += counts[i];
        }
        vm.assertEq(total, draws * hits);
    }

    /// @dev A task whose draw waits for its block.
    function _called(uint32 length, uint8 audits) private returns (TaskId id) {
        Terms memory terms = _terms(Policy.Audit);
        (terms.segments, terms.audits) = (length, audits);
        id = _running(terms);
        _submit(id, 0, _claimNamed("any"));
    }

    function _drawWith(TaskId id, bytes32 hash) private returns (uint32[] memory segments) {
        uint256 drawBlock = market.panel(id, OWN_PANEL, 0).drawBlock;
        vm.roll(drawBlock + 1);
        vm.setBlockhash(drawBlock, hash);
        market.draw(id);
        segments = new uint32[](_seats(id));
        for (uint256 i = 0; i < segments.length; ++i) segments[i] = _seat(id, i).segment;
    }
}
