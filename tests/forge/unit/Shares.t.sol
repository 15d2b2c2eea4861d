// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/interfaces/ISettlement.sol";
import {vm} from "../support/Vm.sol";
import {TaskDriver} from "./support/TaskDriver.sol";

/// @notice Rewards by the shares that the slots agreed on.
contract SharesTest is TaskDriver {
    uint256 private constant MOST_SLOTS = 8;

    function setUp() public override {
        super.setUp();
        _enrol(MOST_SLOTS);
    }

    /// @dev Rule P1: every slot behind the lead claim gets its share of the whole reward, rounded down, or
    /// an equal part where somebody dissents; together never more than the whole, and all the rest goes back
    /// to the requester.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_sharesOfTheReward(uint256 seed, uint8 slots, uint8 dissenters, uint96 reward) external {
        Terms memory terms = _shared(uint8(_bound(slots, 1, MOST_SLOTS)));
        terms.reward = uint96(_bound(reward, 0, CREDIT / MOST_SLOTS));
        dissenters = uint8(_bound(dissenters, 0, (terms.slots - 1) / 2));
        uint16[] memory shares = _randomShares(seed, terms.slots);
        Claim memory claim = _claimWith(shares);
        TaskId id = _windowOf(terms, claim, shares, dissenters);

        market.settleShares(id, claim, shares);

        uint256 whole = uint256(terms.reward) * terms.slots;
        uint256 paid = 0;
        for (uint256 i = 0; i < terms.slots; ++i) {
            bool dissents = i + dissenters >= terms.slots;
            uint256 share = dissenters == 0 ? whole * shares[i] / BPS : dissents ? 0 : terms.reward;
            paid += share;
            _assertCredit(market, _worker(i), CREDIT + share - (dissents ? PENALTY : 0));
        }
        vm.assertLe(paid, whole);
        _assertCredit(market, REQUESTER, CREDIT - paid);
        vm.assertEq(market.task(id).locked, 0);
        _assertBalanced(market);
    }

    /// @dev Rule P1: without shares all slots get equal parts, to the unit.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_equalParts(uint8 slots, uint96 reward) external {
        Terms memory terms = _shared(uint8(_bound(slots, 1, MOST_SLOTS)));
        terms.sharesAgreed = false;
        terms.reward = uint96(_bound(reward, 0, CREDIT / MOST_SLOTS));
        TaskId id = _submitted(terms);
        market.draw(id);
        _passDeadline(id);

        _settle(id);

        for (uint256 i = 0; i < terms.slots; ++i) _assertCredit(market, _worker(i), CREDIT + terms.reward);
        _assertCredit(market, REQUESTER, CREDIT - uint256(terms.reward) * terms.slots);
        _assertBalanced(market);
    }

    /// @dev Rule P1: only the shares that the lead claim names are paid, and only by `settleShares`.
    function test_wrongSharesAreRefused() external {
        uint16[] memory shares = _randomShares(1, 2);
        uint16[] memory others = _randomShares(2, 2);
        Claim memory claim = _claimWith(shares);
        Claim memory other = _claimWith(others);
        TaskId id = _windowOf(_shared(2), claim, shares, 0);
        bytes memory wrong = abi.encodeWithSelector(ISettlement.MarketWrongShares.selector, id);

        _refused(STRANGER, abi.encodeCall(market.settle, (id)), wrong);
        _refused(STRANGER, abi.encodeCall(market.settleShares, (id, claim, others)), wrong);
        _refused(
            STRANGER,
            abi.encodeCall(market.settleShares, (id, other, others)),
            abi.encodeWithSelector(MarketWrongClaim.selector, id, keccak256(abi.encode(other)))
        );
        TaskId equal = _submitted(_terms(Policy.Audit));
        _refused(
            STRANGER,
            abi.encodeCall(market.settleShares, (equal, _claim(), new uint16[](0))),
            abi.encodeWithSelector(ISettlement.MarketWrongShares.selector, equal)
        );
    }

    /// @dev Rules P1, T5: the share of a slot that was lost is not paid to anybody.
    function test_shareOfALostSlot() external {
        uint16[] memory shares = new uint16[](2);
        (shares[0], shares[1]) = (4_000, 6_000);
        Claim memory claim = _claimWith(shares);
        TaskId id = _running(_shared(2));
        vm.prank(REQUESTER);
        market.ping(id, 1);
        _submitShares(id, 0, claim, shares);
        vm.warp(market.slot(id, 1).pongBy);
        market.evict(id, 1);
        _expire(id);
        market.draw(id);
        _passDeadline(id);

        market.settleShares(id, claim, shares);

        _assertCredit(market, _worker(0), CREDIT + 2 * uint256(REWARD) * 4 / 10);
        _assertCredit(market, _worker(1), CREDIT - PENALTY);
        _assertCredit(market, REQUESTER, CREDIT - 2 * uint256(REWARD) * 4 / 10);
    }

    function _shared(uint8 slots) private pure returns (Terms memory terms) {
        terms = _terms(Policy.Audit, slots);
        terms.sharesAgreed = true;
        terms.audits = 0;
    }

    /// @dev Shares of one whole at most, often of less.
    function _randomShares(uint256 seed, uint256 count) private pure returns (uint16[] memory shares) {
        shares = new uint16[](count);
        uint256 left = BPS;
        for (uint256 i = 0; i < count; ++i) {
            shares[i] = uint16(uint256(keccak256(abi.encode(seed, i))) % (left + 1));
            left -= shares[i];
        }
    }

    function _claimWith(uint16[] memory shares) private pure returns (Claim memory claim) {
        claim = _claim();
        claim.shares = keccak256(abi.encodePacked(shares));
    }

    function _submitShares(TaskId id, uint256 slot, Claim memory claim, uint16[] memory shares) private {
        vm.prank(_worker(slot));
        market.submit(id, slot, claim.result, claim.root, shares);
    }

    /// @dev A task whose window is over; its last slots claimed something else, each for itself.
    function _windowOf(Terms memory terms, Claim memory claim, uint16[] memory shares, uint256 dissenters)
        private
        returns (TaskId id)
    {
        id = _running(terms);
        Claim[] memory entries = _entries(terms.slots);
        for (uint256 i = 0; i < terms.slots; ++i) {
            _submitShares(id, i, i + dissenters < terms.slots ? claim : entries[i], shares);
        }
        market.draw(id);
        _passDeadline(id);
    }
}
