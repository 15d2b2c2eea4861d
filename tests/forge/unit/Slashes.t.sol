// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {vm} from "../support/Vm.sol";
import {DisputeDriver} from "./support/DisputeDriver.sol";

/// @notice How slashed money is split, under any parameters that the owner may set.
contract SlashesTest is DisputeDriver {
    uint32 private constant SEGMENT = 2;

    struct Balances {
        uint256 challenger;
        uint256 requester;
        uint256 burned;
    }

    /// @dev Rule P3: one of the stakes behind a withheld claim is split between finder, requester and fire,
    /// the others burn, and all sums to the stakes exactly.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_splitOfStakes(uint16 finderBps, uint16 requesterBps, uint96 stake, uint8 slots) external {
        Params memory p = _tune(finderBps, requesterBps);
        Terms memory terms = _terms(Policy.Audit, uint8(_bound(slots, 1, 4)));
        terms.stake = uint96(_bound(stake, 8 * FEE, CREDIT));
        terms.audits = 0;
        TaskId id = _submitted(terms);
        market.draw(id);
        _challengeUnserved(id, SEGMENT);
        Balances memory before = _balances();
        _passDispute(id, SEGMENT);

        _resolve(id, SEGMENT);

        uint256 pot = uint256(terms.stake) * terms.slots;
        Balances memory gained = _gained(before);
        uint256 escrow = uint256(REWARD) * terms.slots;
        vm.assertEq(gained.challenger, BOND + uint256(terms.stake) * p.finderBps / BPS, "finder");
        vm.assertEq(gained.requester, escrow + uint256(terms.stake) * p.requesterBps / BPS, "requester");
        vm.assertEq(gained.challenger + gained.requester + gained.burned, pot + escrow + BOND, "sum");
        vm.assertGe(gained.burned, pot - uint256(terms.stake) * 9 / 10, "a tenth burns");
        _assertBalanced(market);
    }

    /// @dev Rules P3, A7: where nobody found the wrong, that part burns too.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_splitWithoutFinder(uint16 finderBps, uint16 requesterBps, uint96 stake) external {
        Params memory p = _tune(finderBps, requesterBps);
        Terms memory terms = _terms(Policy.Audit);
        terms.stake = uint96(_bound(stake, 8 * FEE, CREDIT));
        TaskId id = _opening(terms);
        Balances memory before = _balances();
        _passDeadline(id);

        _expire(id);

        Balances memory gained = _gained(before);
        uint256 harmed = uint256(terms.stake) * p.requesterBps / BPS;
        vm.assertEq(gained.requester, REWARD + harmed);
        vm.assertEq(gained.burned, terms.stake - harmed);
        vm.assertEq(gained.challenger, 0);
        _assertBalanced(market);
    }

    /// @dev Rules P3, D4: the bond of a wrong accuser pays the referees; what is left is split between the
    /// accused, the requester and the fire.
    /// forge-config: default.fuzz.runs = 256
    function testFuzz_splitOfABond(uint16 finderBps, uint16 requesterBps, uint96 fee) external {
        Params memory p = _tune(finderBps, requesterBps);
        Terms memory terms = _terms(Policy.Audit);
        terms.audits = 0;
        terms.auditFee = uint96(_bound(fee, LEAST_FEE, MOST_FEE));
        TaskId id = _submitted(terms);
        market.draw(id);
        _challenge(id, SEGMENT);
        _hear(id, SEGMENT, _three(_after(SEGMENT), _after(SEGMENT), _after(SEGMENT)));
        Balances memory before = _balances();
        uint256 accused = _credit(market, _worker(0));

        _resolve(id, SEGMENT);

        uint256 rest = BOND - 3 * uint256(terms.auditFee);
        uint256 compensation = _credit(market, _worker(0)) - accused;
        Balances memory gained = _gained(before);
        vm.assertEq(compensation, rest * p.finderBps / BPS, "accused");
        vm.assertEq(gained.requester, rest * p.requesterBps / BPS, "requester");
        vm.assertEq(compensation + gained.requester + gained.burned, rest, "sum");
        vm.assertEq(gained.challenger, 0, "accuser");
        _assertCredit(market, _referee(id, SEGMENT, 0), terms.auditFee);
        _assertBalanced(market);
    }

    /// @dev Rules P2, P4: a fault costs its part of the stake, all of which burns.
    function testFuzz_faultsBurn(uint16 faultBps, uint96 stake) external {
        Params memory p = _params();
        p.faultBps = uint16(_bound(faultBps, 0, BPS / 2));
        vm.prank(OWNER);
        market.setParams(p);
        Terms memory terms = _terms(Policy.Replicate, 2);
        terms.stake = uint96(_bound(stake, 0, CREDIT));
        TaskId id = _running(terms);
        _commit(id, 0, _claim());
        _passDeadline(id);

        _expire(id);

        uint256 penalty = uint256(terms.stake) * p.faultBps / BPS;
        _assertCredit(market, _worker(0), CREDIT);
        _assertCredit(market, _worker(1), CREDIT - penalty);
        _assertCredit(market, BURN, penalty);
        _assertCredit(market, REQUESTER, CREDIT);
        _assertBalanced(market);
    }

    function _tune(uint16 finderBps, uint16 requesterBps) private returns (Params memory p) {
        p = _params();
        p.finderBps = uint16(_bound(finderBps, 0, BPS * 9 / 10));
        p.requesterBps = uint16(_bound(requesterBps, 0, BPS * 9 / 10 - p.finderBps));
        vm.prank(OWNER);
        market.setParams(p);
    }

    function _balances() private view returns (Balances memory) {
        return Balances(_credit(market, CHALLENGER), _credit(market, REQUESTER), _credit(market, BURN));
    }

    function _gained(Balances memory before) private view returns (Balances memory) {
        Balances memory present = _balances();
        return Balances(
            present.challenger - before.challenger,
            present.requester - before.requester,
            present.burned - before.burned
        );
    }
}
