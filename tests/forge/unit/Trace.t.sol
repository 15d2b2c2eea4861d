// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TraceProbe} from "../../../contracts/mocks/TraceProbe.sol";
import {ForgeTest} from "../support/ForgeTest.sol";
import {vm} from "../support/Vm.sol";
import {TraceTree} from "./support/TraceTree.sol";

/// @notice Proofs of a trace, against a tree that is built in another way. (rule A10)
contract TraceTest is ForgeTest {
    uint256 private constant MOST_SEGMENTS = 70;

    TraceProbe private _probe;

    function setUp() external {
        _probe = new TraceProbe();
    }

    /// @dev Rule A10: every state of every trace is proven at its own index.
    function testFuzz_everyStateIsProven(uint256 seed, uint256 size, uint256 position) external view {
        (bytes32[] memory states, uint256 segments, uint256 index) = _trace(seed, size, position);

        vm.assertTrue(
            _probe.verify(TraceTree.root(states), segments, index, states[index], TraceTree.proof(states, index))
        );
    }

    /// @dev Rule A10: a proof holds at no other index.
    function testFuzz_anotherPositionIsRefused(uint256 seed, uint256 size, uint256 position, uint256 other)
        external
        view
    {
        (bytes32[] memory states, uint256 segments, uint256 index) = _trace(seed, size, position);
        other = _bound(other, 0, 2 * segments + 2);
        vm.assume(other != index);

        vm.assertFalse(
            _probe.verify(TraceTree.root(states), segments, other, states[index], TraceTree.proof(states, index))
        );
    }

    /// @dev Rule A10: a proof with one level less or more is none, whatever it hashes to.
    function testFuzz_anotherDepthIsRefused(uint256 seed, uint256 size, uint256 position, bool longer)
        external
        view
    {
        (bytes32[] memory states, uint256 segments, uint256 index) = _trace(seed, size, position);
        bytes32[] memory proof = TraceTree.proof(states, index);
        bytes32[] memory changed = new bytes32[](longer ? proof.length + 1 : proof.length - 1);
        for (uint256 i = 0; i < changed.length && i < proof.length; ++i) changed[i] = proof[i];
        bytes32 root = _fold(states[index], index, changed);

        vm.assertFalse(_probe.verify(root, segments, index, states[index], changed));
    }

    /// @dev Rule A10: a single wrong sibling spoils a proof.
    function testFuzz_aWrongSiblingIsRefused(
        uint256 seed,
        uint256 size,
        uint256 position,
        uint256 level,
        bytes32 change
    ) external view {
        (bytes32[] memory states, uint256 segments, uint256 index) = _trace(seed, size, position);
        vm.assume(change != 0);
        bytes32[] memory proof = TraceTree.proof(states, index);
        proof[_bound(level, 0, proof.length - 1)] ^= change;

        vm.assertFalse(_probe.verify(TraceTree.root(states), segments, index, states[index], proof));
    }

    /// @dev Rule A10: no other state passes for the one that was committed.
    function testFuzz_anotherStateIsRefused(uint256 seed, uint256 size, uint256 position, bytes32 other)
        external
        view
    {
        (bytes32[] memory states, uint256 segments, uint256 index) = _trace(seed, size, position);
        vm.assume(other != states[index]);

        vm.assertFalse(
            _probe.verify(TraceTree.root(states), segments, index, other, TraceTree.proof(states, index))
        );
    }

    /// @dev Rule A10: what fills the tree up is no state, even with a proof of its place.
    function testFuzz_fillingIsNoState(uint256 seed, uint256 size, uint256 position) external view {
        (bytes32[] memory states, uint256 segments,) = _trace(seed, size, 0);
        uint256 leaves = TraceTree.width(states.length);
        vm.assume(leaves > states.length);
        position = _bound(position, states.length, leaves - 1);

        vm.assertFalse(
            _probe.verify(TraceTree.root(states), segments, position, 0, TraceTree.proof(states, position))
        );
    }

    /// @dev Rule A10: the depth is the one of the tree that holds all states.
    function testFuzz_depthHoldsAllStates(uint32 segments) external view {
        vm.assertEq(uint256(1) << _probe.depth(segments), TraceTree.width(uint256(segments) + 1));
    }

    /// @dev Rule A10: the hashes are those of the specification, leaf by leaf.
    function test_rootOfThreeStates() external view {
        bytes32 first = keccak256(bytes.concat(hex"00", bytes32("a")));
        bytes32 second = keccak256(bytes.concat(hex"00", bytes32("b")));
        bytes32 third = keccak256(bytes.concat(hex"00", bytes32("c")));
        bytes32 left = keccak256(bytes.concat(hex"01", first, second));
        bytes32 right = keccak256(bytes.concat(hex"01", third, bytes32(0)));
        bytes32[] memory proof = new bytes32[](2);
        (proof[0], proof[1]) = (0, left);

        vm.assertTrue(_probe.verify(keccak256(bytes.concat(hex"01", left, right)), 2, 2, "c", proof));
    }

    function _trace(uint256 seed, uint256 size, uint256 position)
        private
        pure
        returns (bytes32[] memory states, uint256 segments, uint256 index)
    {
        segments = _bound(size, 1, MOST_SEGMENTS);
        index = _bound(position, 0, segments);
        states = new bytes32[](segments + 1);
        for (uint256 i = 0; i <= segments; ++i) states[i] = keccak256(abi.encode(seed, i));
    }

    /// @dev The root that a proof of any length leads to.
    function _fold(bytes32 state, uint256 index, bytes32[] memory proof) private pure returns (bytes32 hash) {
        hash = keccak256(bytes.concat(hex"00", state));
        for (uint256 i = 0; i < proof.length; ++i) {
            bool right = (index >> i) & 1 == 1;
            hash = keccak256(right ? bytes.concat(hex"01", proof[i], hash) : bytes.concat(hex"01", hash, proof[i]));
        }
    }
}
