// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {ISettlement} from "./interfaces/ISettlement.sol";
import {ITasks} from "./interfaces/ITasks.sol";
import {Claims} from "./market/Claims.sol";
import {Delegation} from "./market/Delegation.sol";
import {Vault} from "./market/Vault.sol";

/// @title The market for verified training
/// @notice Holds requesters' escrow and workers' stakes, and pays by what verification says.
/// @dev The market is too large for one contract. This part takes money, workers and claims; what it
/// does not know it hands to `MarketSettlement`, and that to `MarketDisputes`, by delegatecall to
/// addresses that never change. Use it through `ITrainingMarket`.
/// The owner can stop new posts and set the parameters of future tasks within fixed bounds, and has
/// no way to touch a running task or anybody's money.
contract TrainingMarket is Claims, Ownable2Step, Multicall, Delegation {
    /// @dev The owner cannot price everybody out of auditing: the bond stays below this.
    uint256 private immutable _seatBondCap;

    constructor(address currency_, address owner_, address settlement_, Params memory params_)
        Vault(currency_)
        Ownable(owner_)
        EIP712("Trainyard", "1")
        Delegation(settlement_)
    {
        _seatBondCap = uint256(params_.seatBond) * 100;
        _setParams(params_);
    }

    /// @notice Value that comes without a call is a deposit of its sender.
    receive() external payable {
        _creditValue();
    }

    /// @inheritdoc ITasks
    function setPaused(bool paused_) external onlyOwner {
        if (paused_) _pause();
        else _unpause();
    }

    /// @inheritdoc ITasks
    function setParams(Params calldata params_) external onlyOwner {
        _setParams(params_);
    }

    function _advance(TaskId id) internal override {
        Address.functionDelegateCall(_next, abi.encodeCall(ISettlement.expire, (id)));
    }

    function _setParams(Params memory p) private {
        if (p.seatBond == 0 || p.seatBond > _seatBondCap) revert MarketInvalidParams("seatBond");
        if (p.unbondFor > 30 days) revert MarketInvalidParams("unbondFor");
        if (p.faultBps > BPS / 2) revert MarketInvalidParams("faultBps");
        // At least a tenth is burned, or accusing oneself would cost nothing.
        if (uint256(p.finderBps) + p.requesterBps > BPS * 9 / 10) revert MarketInvalidParams("finderBps");
        if (p.referees < 3 || p.referees % 2 == 0) revert MarketInvalidParams("referees");
        if (p.escalation <= p.referees || p.escalation > MAX_SEATS || p.escalation % 2 == 0) {
            revert MarketInvalidParams("escalation");
        }
        if (p.minWindow == 0 || p.minWindow > 1 days) revert MarketInvalidParams("minWindow");
        if (p.drawDelay == 0 || p.drawDelay > 64) revert MarketInvalidParams("drawDelay");
        _params.push(p);
        emit ParamsSet(_params.length - 1, p);
    }
}
