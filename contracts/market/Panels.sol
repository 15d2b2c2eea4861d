// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {ITasks} from "../interfaces/ITasks.sol";
import {Settlement} from "./Settlement.sol";

/// @title Panels: drawn members who answer blind
/// @dev Auditors, evaluators and referees are all seats of a panel. A panel is called, drawn by the
/// hash of a later block, commits, and reveals.
abstract contract Panels is Settlement, IDisputes {
    using SafeCast for uint256;

    /// @dev How many places of the pool a seat looks at.
    uint256 private constant MAX_PROBES = 32;

    /// @notice The members drawn for a panel's seats; zero where there is none.
    struct Drawn {
        address[] members;
        uint256 count;
        /// Whether a drawn member has no bond free.
        bool busy;
    }

    /// @notice Who must not sit on a panel, with room for those who are drawn onto it.
    struct Excluded {
        address[] accounts;
        uint256 count;
    }

    /// @inheritdoc IDisputes
    function answerCommitment(
        TaskId id,
        uint32 segment,
        uint256 index,
        address member,
        bytes32 salt,
        bytes32 answer
    ) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), id, segment, index, member, salt, answer));
    }

    /// @dev The random seed of a panel; zero if the block is out of reach, and then a later block is
    /// named, since a hash older than 256 blocks cannot be read.
    function _seed(TaskId id, Task storage task, uint32 segment, uint256 round) internal returns (bytes32) {
        Panel storage p = _panels[id][segment][round].panel;
        if (p.seed != 0) return p.seed;
        if (block.number <= p.drawBlock) revert MarketDrawPending(id, p.drawBlock);
        bytes32 hash = blockhash(p.drawBlock);
        if (hash != 0) return keccak256(abi.encode(hash, id, segment, round));
        p.drawBlock = _drawBlock(task);
        emit DrawPostponed(id, segment, round, p.drawBlock);
        return 0;
    }

    /// @dev Picks a member for each of `wanted` seats, without changing anything; zero where there is none.
    function _pick(Task storage task, Panel storage p, bytes32 seed, uint256 wanted, Excluded memory excluded)
        internal
        view
        returns (Drawn memory drawn)
    {
        drawn.members = new address[](wanted);
        for (uint256 i = 0; i < wanted; ++i) {
            address member = _probe(task, p, keccak256(abi.encode(seed, i)), excluded);
            if (member == address(0)) continue;
            _exclude(excluded, member);
            // INVARIANT: a seat goes to the member that was drawn, or to nobody. Passing over who is busy
            // would let whoever keeps the others busy choose the judges.
            if (_workers[member].bond - _workers[member].bondLocked < _bondOf(task)) {
                drawn.busy = true;
                continue;
            }
            drawn.members[i] = member;
            ++drawn.count;
        }
    }

    /// @dev Keeps a draw that comes up short for a later try: it must not be drawn anew by waiting.
    function _await(TaskId id, uint32 segment, uint256 round, bytes32 seed, uint256 found, uint256 needed) internal {
        Panel storage p = _panels[id][segment][round].panel;
        if (p.seed != 0) revert ITasks.MarketTooFewAuditors(found, needed);
        p.seed = seed;
        emit SeatsAwaited(id, segment, round, seed, found);
    }

    /// @dev Gives a seat to a picked member and puts its bond behind it.
    function _place(TaskId id, uint32 segment, uint256 round, address member, uint32 duty) internal {
        uint256 bond = _bondOf(_tasks[id]);
        PanelSeats storage ps = _panels[id][segment][round];
        uint256 index = ps.panel.seats++;
        Seat storage s = ps.seats[index];
        s.member = member;
        s.segment = duty;
        s.state = SeatState.Drawn;
        _workers[member].bondLocked += uint96(bond);
        emit SeatDrawn(id, segment, round, index, member, duty, bond);
    }

    /// @return complete whether all seats have committed now
    function _commitSeat(TaskId id, uint32 segment, uint256 round, uint256 index, bytes32 commitment)
        internal
        returns (bool complete)
    {
        PanelSeats storage ps = _panels[id][segment][round];
        if (index >= ps.panel.seats || ps.seats[index].member != msg.sender) {
            revert MarketNotSeatHolder(id, index, msg.sender);
        }
        Seat storage s = ps.seats[index];
        if (s.state != SeatState.Drawn) revert MarketUnexpectedSeat(id, index, s.state);
        s.state = SeatState.Committed;
        s.answer = commitment;
        return ++ps.panel.committed == ps.panel.seats;
    }

    /// @dev Anyone may relay a reveal: the commitment names the member.
    /// @return complete whether all that committed have revealed now
    function _revealSeat(TaskId id, uint32 segment, uint256 round, uint256 index, bytes32 salt, bytes32 answer)
        internal
        returns (bool complete)
    {
        PanelSeats storage ps = _panels[id][segment][round];
        if (index >= ps.panel.seats) revert MarketNotSeatHolder(id, index, msg.sender);
        Seat storage s = ps.seats[index];
        if (s.state != SeatState.Committed) revert MarketUnexpectedSeat(id, index, s.state);
        if (s.answer != answerCommitment(id, segment, index, s.member, salt, answer)) {
            revert MarketWrongAnswer(id, index);
        }
        s.state = SeatState.Revealed;
        s.answer = answer;
        return ++ps.panel.revealed == ps.panel.committed;
    }

    /// @dev The parties of a task: they never judge it. Room is left for `room` more.
    function _parties(TaskId id, Task storage task, uint256 room) internal view returns (Excluded memory excluded) {
        uint256 slots = task.slots;
        excluded.accounts = new address[](slots + 1 + room);
        _exclude(excluded, task.requester);
        for (uint256 i = 0; i < slots; ++i) {
            _exclude(excluded, _slots[id][i].worker);
        }
    }

    function _exclude(Excluded memory excluded, address account) internal pure {
        excluded.accounts[excluded.count++] = account;
    }

    function _excludeSeats(Excluded memory excluded, PanelSeats storage ps) internal view {
        for (uint256 i = 0; i < ps.panel.seats; ++i) {
            _exclude(excluded, ps.seats[i].member);
        }
    }

    /// @dev The first probed member that is on duty for the task; zero if none is found.
    function _probe(Task storage task, Panel storage p, bytes32 seed, Excluded memory excluded)
        private
        view
        returns (address)
    {
        address[] storage members = _pools[task.envClass];
        uint256 length = p.pool;
        uint256 step = _step(seed, length);
        for (uint256 i = 0; i < length && i < MAX_PROBES; ++i) {
            uint256 place = (uint256(seed) % length + i * step) % length;
            // The pool may have shrunk since the panel was called.
            if (place >= members.length) continue;
            address candidate = members[place];
            if (!_isExcluded(excluded, candidate) && _isOnDuty(candidate, task, p.calledAt)) return candidate;
        }
        return address(0);
    }

    /// @dev A random stride that visits every place of the pool, so that nobody is missed and nobody inherits
    /// a neighbour's seats.
    function _step(bytes32 seed, uint256 length) private pure returns (uint256 step) {
        if (length < 2) return 1;
        step = 1 + uint256(keccak256(abi.encode(seed, "step"))) % (length - 1);
        // One is prime to every length; few steps away from any number there is another.
        while (!_coprime(step, length)) step = step % (length - 1) + 1;
    }

    function _coprime(uint256 a, uint256 b) private pure returns (bool) {
        while (b != 0) (a, b) = (b, a % b);
        return a == 1;
    }

    function _isOnDuty(address candidate, Task storage task, uint256 calledAt) private view returns (bool) {
        Worker storage w = _workers[candidate];
        // INVARIANT: who came or changed after the call is not drawn, so the draw cannot be steered.
        if (w.since >= calledAt || w.bond < _bondOf(task)) return false;
        return w.minFee <= task.auditFee && w.minAuditFor <= task.auditFor && w.minAnswerFor <= task.answerFor;
    }

    function _isExcluded(Excluded memory excluded, address account) private pure returns (bool) {
        for (uint256 i = 0; i < excluded.count; ++i) {
            if (excluded.accounts[i] == account) return true;
        }
        return false;
    }
}
