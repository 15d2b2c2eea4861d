// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../../../contracts/interfaces/IMarketTypes.sol";
import {ITrainingMarket} from "../../../contracts/interfaces/ITrainingMarket.sol";
import {ContractWallet} from "../../../contracts/mocks/ContractWallet.sol";
import {HostileReceiver} from "../../../contracts/mocks/HostileReceiver.sol";
import {OddToken} from "../../../contracts/mocks/OddToken.sol";
import {vm} from "./Vm.sol";

/// @notice The people of a campaign, their clock, and how they call the market.
/// @dev A call that the market refuses reverts the whole step, so that forge counts it. What must never
/// happen does not revert but is noted in `violation`, which every invariant looks at.
abstract contract Cast is IMarketTypes {
    uint256 internal constant PEOPLE = 26;
    uint256 internal constant HOSTILE = 3;
    address internal constant OWNER = address(0x04E4);
    address internal constant BURN = 0x000000000000000000000000000000000000dEaD;
    bytes32 internal constant LARGE_CLASS = keccak256("class");
    bytes32 internal constant SMALL_CLASS = keccak256("small class");
    bytes4 private constant PANIC = 0x4e487b71;

    ITrainingMarket public immutable market;
    /// @notice The market's currency, if it is a token.
    OddToken public immutable token;

    /// @notice Everyone who ever acts: plain accounts, a contract wallet, and hostile receivers.
    address[] internal actors;
    /// @notice Place in `actors` counted from one.
    mapping(address actor => uint256) public placeOf;
    mapping(address actor => uint256) internal _keyOf;

    uint256 public deposited;
    uint256 public withdrawn;
    /// @notice Calls that went through, per function.
    mapping(bytes4 selector => uint256) public made;
    /// @notice The first thing that should never have happened; empty as long as all is well.
    string public violation;

    uint256 internal _clock;
    uint256 internal _height;
    uint256 private _dice;

    constructor(ITrainingMarket market_) {
        market = market_;
        token = OddToken(market_.currency());
        _clock = block.timestamp;
        _height = block.number;
        for (uint256 i = 0; i < PEOPLE; ++i) _enrol(vm.addr(i + 1), i + 1);
        _enrol(address(new ContractWallet(actors[0])), 1);
        for (uint256 i = 0; i < HOSTILE; ++i) _enrol(address(new HostileReceiver()), 0);
    }

    function everyone() external view returns (address[] memory) {
        return actors;
    }

    function _enrol(address actor, uint256 key) private {
        actors.push(actor);
        placeOf[actor] = actors.length;
        _keyOf[actor] = key;
    }

    function _isHostile(address actor) internal view returns (bool) {
        return placeOf[actor] > PEOPLE + 1;
    }

    // Chance: a step takes one number from forge and makes as many of it as it needs.

    function _shake(uint256 seed) internal {
        _dice = uint256(keccak256(abi.encode(_dice, seed)));
    }

    function _roll(uint256 sides) internal returns (uint256) {
        _dice = uint256(keccak256(abi.encode(_dice)));
        return _dice % sides;
    }

    /// @dev True once in `times` times.
    function _once(uint256 times) internal returns (bool) {
        return _roll(times) == 0;
    }

    function _anyone() internal returns (address) {
        return actors[_roll(actors.length)];
    }

    // Time

    function _now() internal view returns (uint256) {
        return _clock;
    }

    function _passTime(uint256 duration) internal {
        _warpTo(_clock + duration);
    }

    /// @dev Blocks come with time: three hundred of them are out of reach of a draw.
    function _warpTo(uint256 timestamp) internal {
        if (timestamp <= _clock) return;
        _clock = timestamp;
        vm.warp(timestamp);
        _passBlocks(1);
    }

    function _passBlocks(uint256 count) internal {
        _height += count;
        vm.roll(_height);
    }

    /// @dev Forge may set its own time before a step.
    function _takeClock() internal {
        vm.warp(_clock);
        vm.roll(_height);
    }

    // Calls

    function _do(address actor, bytes memory data) internal {
        _do(actor, 0, data);
    }

    function _do(address actor, uint256 value, bytes memory data) internal {
        (bool done, bytes memory answer) = _send(actor, value, data);
        if (done || _noted(answer)) return;
        assembly ("memory-safe") {
            revert(add(answer, 32), mload(answer))
        }
    }

    /// @dev A call that the market may refuse without ending the step.
    function _attempt(address actor, bytes memory data) internal returns (bool done) {
        bytes memory answer;
        (done, answer) = _send(actor, 0, data);
        if (!done) _noted(answer);
    }

    /// @dev A call that is due: the market must not refuse it, whoever makes it.
    function _demand(address actor, bytes memory data, string memory what) internal {
        (bool done, bytes memory answer) = _send(actor, 0, data);
        if (!done) _note(string.concat(what, " refused: ", vm.toString(answer)));
    }

    /// @dev A call that the market must refuse.
    function _forbid(address actor, bytes memory data, string memory what) internal {
        if (_attempt(actor, data)) _note(string.concat(what, " let through"));
    }

    function _note(string memory what) internal {
        if (bytes(violation).length == 0) violation = what;
    }

    function _note(bool broken, string memory what) internal {
        if (broken) _note(what);
    }

    function _send(address actor, uint256 value, bytes memory data) private returns (bool done, bytes memory answer) {
        if (value != 0) {
            if (address(token) != address(0)) value = 0;
            vm.deal(actor, actor.balance + value);
        }
        vm.prank(actor);
        // Enough for every act; a receiver that burns all of it must not stop the campaign.
        (done, answer) = address(market).call{value: value, gas: 20_000_000}(data);
        if (!done) return (done, answer);
        ++made[bytes4(data)];
        deposited += value;
    }

    /// @dev Arithmetic or an index out of bounds is never how the market says no.
    function _noted(bytes memory answer) private returns (bool) {
        if (bytes4(answer) != PANIC) return false;
        _note("the market panicked");
        return true;
    }
}
