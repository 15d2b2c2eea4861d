// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {ITasks} from "../../../contracts/interfaces/ITasks.sol";
import {IVault} from "../../../contracts/interfaces/IVault.sol";
import {IWorkers} from "../../../contracts/interfaces/IWorkers.sol";
import {HostileReceiver} from "../../../contracts/mocks/HostileReceiver.sol";
import {OddToken} from "../../../contracts/mocks/OddToken.sol";
import {Book} from "./Book.sol";
import {vm} from "./Vm.sol";

/// @notice Moves of money, of the register and of the owner. A move returns whether it found something to do.
abstract contract MoneyMoves is Book {
    uint96 internal constant MEMBER_BOND = 1 ether;

    bool internal _paused;

    /// @dev Everyone with credit; most as members of the large class, a few of the small one.
    function _settleIn() internal {
        _takeClock();
        for (uint256 i = 0; i < actors.length; ++i) {
            _fund(actors[i], 200 ether);
            bytes32 envClass = i % 6 == 3 ? SMALL_CLASS : LARGE_CLASS;
            _do(actors[i], abi.encodeCall(IWorkers.register, ("profile", envClass, i % 9 == 5 ? 0 : MEMBER_BOND)));
        }
        _passTime(1);
    }

    function _fund(address actor, uint256 amount) private {
        if (address(token) == address(0)) return _do(actor, amount, abi.encodeCall(IVault.deposit, (amount)));
        uint256 held = token.balanceOf(address(market));
        token.mint(actor, 2 * amount);
        vm.prank(actor);
        token.approve(address(market), amount);
        _do(actor, abi.encodeCall(IVault.deposit, (amount)));
        deposited += token.balanceOf(address(market)) - held;
    }

    function _deposit() internal returns (bool) {
        address actor = _anyone();
        if (address(token) == address(0) && _once(3)) {
            // Without a call.
            _do(actor, 1 + _roll(1 ether), "");
        } else {
            _fund(actor, _roll(5 ether));
        }
        return true;
    }

    function _withdraw() internal returns (bool) {
        address from = _anyone();
        uint256 credit = market.account(from).credit;
        if (credit == 0) return false;
        address to = _once(4) ? _anyone() : from;
        if (_isHostile(to)) _provoke(HostileReceiver(payable(to)));
        uint256 amount = _once(8) ? credit : _roll(credit / 8 + 1);
        _do(from, abi.encodeCall(IVault.withdraw, (to, amount)));
        withdrawn += amount;
        return true;
    }

    /// @dev What a hostile receiver does when money arrives.
    function _provoke(HostileReceiver who) private {
        bytes memory call;
        uint256 id = live.length == 0 ? 1 : live[_roll(live.length)];
        uint256 choice = _roll(6);
        if (choice == 0) call = abi.encodeCall(IVault.withdraw, (address(who), 1));
        else if (choice == 1) call = abi.encodeCall(IVault.burn, ());
        else if (choice == 2) call = abi.encodeCall(ISettlement.settle, (_id(id)));
        else if (choice == 3) call = abi.encodeCall(ISettlement.expire, (_id(id)));
        else if (choice == 4) call = abi.encodeCall(ISettlement.cancel, (_id(id)));
        else call = abi.encodeCall(IWorkers.retire, ());
        who.setMood(HostileReceiver.Mood(_roll(4)), address(market), call);
    }

    function _burn() internal returns (bool) {
        uint256 credit = market.account(BURN).credit;
        if (credit == 0) return false;
        _do(_anyone(), abi.encodeCall(IVault.burn, ()));
        withdrawn += credit;
        return true;
    }

    function _setHabit() internal returns (bool) {
        if (address(token) == address(0)) return false;
        token.setHabit(OddToken.Habit(_roll(6)));
        return true;
    }

    // The register

    function _register() internal returns (bool) {
        for (uint256 i = _roll(actors.length); i < actors.length; ++i) {
            Worker memory w = market.worker(actors[i]);
            if (w.envClass != 0 || w.unbondsAt != 0) continue;
            uint96 bond = _once(4) ? 0 : MEMBER_BOND;
            uint256 value = _once(3) ? bond : 0;
            _do(
                actors[i],
                value,
                abi.encodeCall(IWorkers.register, ("profile", _once(4) ? SMALL_CLASS : LARGE_CLASS, bond))
            );
            return true;
        }
        return false;
    }

    function _setProfile() internal returns (bool) {
        address actor = _anyone();
        if (market.worker(actor).envClass == 0) return false;
        _do(actor, abi.encodeCall(IWorkers.setProfile, (bytes32(1 + _roll(9)))));
        return true;
    }

    function _addBond() internal returns (bool) {
        address actor = _anyone();
        if (market.worker(actor).envClass == 0) return false;
        uint96 amount = uint96(_roll(MEMBER_BOND));
        _do(actor, _once(3) ? amount : 0, abi.encodeCall(IWorkers.addBond, (amount)));
        return true;
    }

    function _setDuty() internal returns (bool) {
        address actor = _anyone();
        if (market.worker(actor).envClass == 0) return false;
        uint96 minFee = _once(3) ? uint96(_roll(0.003 ether)) : 0;
        uint32 minFor = _once(3) ? uint32(_roll(1 days)) : 0;
        _do(actor, abi.encodeCall(IWorkers.setDuty, (minFee, minFor, minFor)));
        return true;
    }

    /// @dev Now and then only: an empty pool would keep the campaign out of every panel.
    function _retire() internal returns (bool) {
        address actor = _anyone();
        if (market.worker(actor).envClass == 0 || !_once(3)) return false;
        _do(actor, abi.encodeCall(IWorkers.retire, ()));
        return true;
    }

    function _unbond() internal returns (bool) {
        for (uint256 i = _roll(actors.length); i < actors.length; ++i) {
            Worker memory w = market.worker(actors[i]);
            if (w.unbondsAt == 0 || w.bondLocked != 0) continue;
            if (_now() < w.unbondsAt && !_once(8)) continue;
            _warpTo(w.unbondsAt);
            _do(actors[i], abi.encodeCall(IWorkers.unbond, ()));
            return true;
        }
        return false;
    }

    // The owner

    function _setParams() internal returns (bool) {
        uint8 referees = uint8(3 + 2 * _roll(2));
        Params memory p = Params({
            seatBond: uint96(0.05 ether + _roll(0.05 ether)),
            unbondFor: uint32(_roll(14 days)),
            faultBps: uint16(_roll(5_001)),
            finderBps: uint16(_roll(6_001)),
            requesterBps: uint16(_roll(3_001)),
            referees: referees,
            escalation: referees + uint8(2 + 2 * _roll(2)),
            drawDelay: uint8(1 + _roll(3)),
            minWindow: uint32(1 + _roll(1 hours))
        });
        _do(OWNER, abi.encodeCall(ITasks.setParams, (p)));
        return true;
    }

    function _setPaused() internal returns (bool) {
        _do(OWNER, abi.encodeCall(ITasks.setPaused, (!_paused)));
        _paused = !_paused;
        return true;
    }
}
