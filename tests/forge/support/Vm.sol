// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The cheat codes of forge that our tests use. The registries carry no current forge-std, and
/// this is all of it that is needed.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    // Accounts and signatures
    function addr(uint256 key) external pure returns (address);
    function deal(address who, uint256 balance) external;
    function etch(address who, bytes calldata code) external;
    function label(address who, string calldata name) external;
    function prank(address sender) external;
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function startPrank(address sender) external;
    function stopPrank() external;

    // Time and state
    function getBlockNumber() external view returns (uint256);
    function getBlockTimestamp() external view returns (uint256);
    function load(address who, bytes32 slot) external view returns (bytes32);
    function prevrandao(bytes32 value) external;
    function revertToState(uint256 id) external returns (bool);
    function roll(uint256 number) external;
    function setBlockhash(uint256 number, bytes32 hash) external;
    function snapshotState() external returns (uint256 id);
    function store(address who, bytes32 slot, bytes32 value) external;
    function warp(uint256 timestamp) external;

    // Expectations
    function assume(bool condition) external pure;
    function expectCall(address callee, bytes calldata data) external;
    function expectEmit() external;
    function expectEmit(address emitter) external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data) external;
    function expectEmit(bool topic1, bool topic2, bool topic3, bool data, address emitter) external;
    function expectRevert() external;
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata reason) external;
    function getRecordedLogs() external returns (Log[] memory);
    function recordLogs() external;

    // Assertions
    function assertEq(address left, address right) external pure;
    function assertEq(address left, address right, string calldata why) external pure;
    function assertEq(bool left, bool right) external pure;
    function assertEq(bool left, bool right, string calldata why) external pure;
    function assertEq(bytes calldata left, bytes calldata right) external pure;
    function assertEq(bytes32 left, bytes32 right) external pure;
    function assertEq(bytes32 left, bytes32 right, string calldata why) external pure;
    function assertEq(string calldata left, string calldata right, string calldata why) external pure;
    function assertEq(uint256 left, uint256 right) external pure;
    function assertEq(uint256 left, uint256 right, string calldata why) external pure;
    function assertGe(uint256 left, uint256 right) external pure;
    function assertGe(uint256 left, uint256 right, string calldata why) external pure;
    function assertGt(uint256 left, uint256 right) external pure;
    function assertGt(uint256 left, uint256 right, string calldata why) external pure;
    function assertLe(uint256 left, uint256 right) external pure;
    function assertLe(uint256 left, uint256 right, string calldata why) external pure;
    function assertLt(uint256 left, uint256 right) external pure;
    function assertLt(uint256 left, uint256 right, string calldata why) external pure;
    function assertTrue(bool condition) external pure;
    function assertTrue(bool condition, string calldata why) external pure;
    function assertFalse(bool condition) external pure;
    function assertFalse(bool condition, string calldata why) external pure;

    function toString(uint256 value) external pure returns (string memory);
    function toString(bytes calldata value) external pure returns (string memory);
    function toString(bytes32 value) external pure returns (string memory);
    function toString(address value) external pure returns (string memory);
}

/// @dev Where forge answers them.
Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
