// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IVault} from "../interfaces/IVault.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TaskBook} from "./TaskBook.sol";

/// @title Movements of money inside the market
/// @dev Every movement can be told from an event, so that all balances can be rebuilt from them alone.
abstract contract Ledger is TaskBook {
    using SafeCast for uint256;

    /// @dev Takes `amount` from the credit of `who`; the caller puts it into a lock or a bond.
    function _debit(address who, uint256 amount) internal {
        uint256 credit = _accounts[who].credit;
        if (credit < amount) revert IVault.MarketInsufficientCredit(who, credit, amount);
        _accounts[who].credit = uint128(credit - amount);
    }

    /// @dev Gives what has left a lock or a bond to `who`.
    function _credit(TaskId id, address who, uint256 amount) internal {
        if (amount == 0) return;
        _accounts[who].credit = (_accounts[who].credit + amount).toUint128();
        emit IVault.Credited(id, who, amount);
    }

    /// @dev Moves credit of `who` into the task's lock.
    function _lock(Task storage task, address who, uint256 amount) internal {
        _debit(who, amount);
        task.locked = (task.locked + amount).toUint96();
    }

    /// @dev Splits slashed money: to who found the wrong, to the requester, and the rest is burned.
    /// The burned part makes accusing oneself a loss.
    function _slash(TaskId id, Task storage task, uint256 amount, address finder) internal {
        Params storage p = _params[task.paramsId];
        uint256 found = finder == address(0) ? 0 : amount * p.finderBps / BPS;
        uint256 harmed = amount * p.requesterBps / BPS;
        _credit(id, finder, found);
        _credit(id, task.requester, harmed);
        // INVARIANT: the three parts sum to `amount`; rounding is burned.
        _credit(id, BURN, amount - found - harmed);
    }

    function _record(TaskId id, address who, Record entry) internal {
        Account storage account = _accounts[who];
        // 2**32 entries of one worker cannot be written in the life of a chain.
        unchecked {
            if (entry == Record.Settled) ++account.settled;
            else if (entry == Record.Failed) ++account.failed;
            else if (entry == Record.AuditRight) ++account.auditsRight;
            else ++account.auditsWrong;
        }
        emit IVault.Recorded(id, who, entry);
    }

    /// @dev What stands behind a seat or a challenge: it covers both committees' fees. It is one amount
    /// for all tasks, so that every place in a pool has the same price.
    function _bondOf(Task storage task) internal view returns (uint256) {
        return _params[task.paramsId].seatBond;
    }

    function _refereeCost(uint256 paramsId, uint256 auditFee) internal view returns (uint256) {
        Params storage p = _params[paramsId];
        return (uint256(p.referees) + p.escalation) * auditFee;
    }

    /// @dev Frees the bond behind a seat, less `slashed`, which the caller hands on.
    function _closeSeat(TaskId id, uint32 segment, uint256 round, uint256 index, uint256 bond, uint256 slashed)
        internal
        returns (address holder)
    {
        Seat storage seat = _panels[id][segment][round].seats[index];
        holder = seat.member;
        Worker storage member = _workers[holder];
        seat.state = SeatState.Closed;
        // INVARIANT: bondLocked is the sum of the bonds behind the member's seats that are not closed.
        member.bondLocked -= uint96(bond);
        member.bond -= uint96(slashed);
        emit IDisputes.SeatClosed(id, segment, round, index, holder, bond, slashed);
    }

    /// @dev Closes a seat whose answer was right and pays for it.
    /// @return fee what whoever owes it must give up
    function _rewardSeat(TaskId id, Task storage task, uint32 segment, uint256 round, uint256 index)
        internal
        returns (uint256 fee)
    {
        address holder = _closeSeat(id, segment, round, index, _bondOf(task), 0);
        _record(id, holder, Record.AuditRight);
        fee = task.auditFee;
        _credit(id, holder, fee);
    }

    /// @dev Closes a seat that gave no answer, which costs part of the bond, or a wrong one, which costs
    /// all of it. It is burned: nobody gains by stalling or outvoting a member.
    function _burnSeat(TaskId id, Task storage task, uint32 segment, uint256 round, uint256 index, bool missing)
        internal
    {
        uint256 bond = _bondOf(task);
        uint256 slashed = missing ? bond * _params[task.paramsId].faultBps / BPS : bond;
        address holder = _closeSeat(id, segment, round, index, bond, slashed);
        _record(id, holder, Record.AuditWrong);
        _credit(id, BURN, slashed);
    }
}
