// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IWorkers} from "../interfaces/IWorkers.sol";
import {Vault} from "./Vault.sol";

/// @title Registration, bonds and the pools that panels are drawn from
/// @dev A draw passes over who came, or changed its terms, after the panel was called: nobody can
/// steer a draw once its block is known.
abstract contract Workers is Vault, IWorkers {
    using SafeCast for uint256;

    /// @inheritdoc IWorkers
    function register(bytes32 profile, bytes32 envClass, uint96 bond) external payable {
        Worker storage self = _workers[msg.sender];
        if (self.envClass != 0) revert MarketAlreadyRegistered(msg.sender);
        if (self.unbondsAt != 0) revert MarketUnbonding(msg.sender, self.unbondsAt);
        if (envClass == 0 || profile == 0) revert MarketZeroDigest();
        _creditValue();

        self.envClass = envClass;
        self.profile = profile;
        emit WorkerRegistered(msg.sender, envClass, profile);
        if (bond != 0) _addBond(self, bond);
    }

    /// @inheritdoc IWorkers
    function setProfile(bytes32 profile) external {
        Worker storage self = _registered();
        if (profile == 0) revert MarketZeroDigest();
        self.profile = profile;
        emit ProfileChanged(msg.sender, profile);
    }

    /// @inheritdoc IWorkers
    function addBond(uint96 amount) external payable {
        Worker storage self = _registered();
        _creditValue();
        _addBond(self, amount);
    }

    /// @inheritdoc IWorkers
    function setDuty(uint96 minFee, uint32 minAuditFor, uint32 minAnswerFor) external {
        Worker storage self = _registered();
        self.minFee = minFee;
        self.minAuditFor = minAuditFor;
        self.minAnswerFor = minAnswerFor;
        self.since = block.timestamp.toUint32();
        emit DutySet(msg.sender, minFee, minAuditFor, minAnswerFor, block.timestamp);
    }

    /// @inheritdoc IWorkers
    function retire() external {
        Worker storage self = _registered();
        uint256 unbondsAt = block.timestamp + self.unbondFor;
        if (self.poolIndex != 0) {
            _leavePool(_pools[self.envClass], self.poolIndex);
            self.poolIndex = 0;
        }
        self.envClass = 0;
        self.unbondsAt = unbondsAt.toUint40();
        emit WorkerRetired(msg.sender, unbondsAt);
    }

    /// @inheritdoc IWorkers
    function unbond() external {
        Worker storage self = _workers[msg.sender];
        if (self.unbondsAt == 0) revert MarketNotRetired(msg.sender);
        if (block.timestamp < self.unbondsAt) revert MarketUnbonding(msg.sender, self.unbondsAt);
        // Seats end by time, and a retired worker is drawn for no more: this can only be a wait.
        if (self.bondLocked != 0) revert MarketBondInUse(msg.sender, self.bondLocked);

        uint256 bond = self.bond;
        delete _workers[msg.sender];
        emit BondReturned(msg.sender, bond);
        _credit(TaskId.wrap(0), msg.sender, bond);
    }

    function _registered() private view returns (Worker storage self) {
        self = _workers[msg.sender];
        if (self.envClass == 0) revert MarketNotRegistered(msg.sender);
    }

    function _addBond(Worker storage self, uint256 amount) private {
        uint256 bond = self.bond + amount;
        Params storage p = _params[_params.length - 1];
        if (amount == 0 || bond < p.seatBond) revert MarketBondTooLow(bond, p.seatBond);
        _debit(msg.sender, amount);
        self.bond = bond.toUint96();
        self.since = block.timestamp.toUint32();
        if (self.poolIndex == 0) {
            address[] storage pool = _pools[self.envClass];
            pool.push(msg.sender);
            self.poolIndex = pool.length.toUint32();
            self.unbondFor = p.unbondFor;
        }
        emit BondAdded(msg.sender, amount, self.poolIndex, block.timestamp);
    }

    /// @dev The last member takes the place of the one that leaves, so that a pool has no dead places.
    function _leavePool(address[] storage pool, uint256 index) private {
        address last = pool[pool.length - 1];
        pool[index - 1] = last;
        _workers[last].poolIndex = uint32(index);
        pool.pop();
    }
}
