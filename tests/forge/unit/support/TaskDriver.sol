// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "../../../../contracts/interfaces/IMarketTypes.sol";
import {ITrainingMarket} from "../../../../contracts/interfaces/ITrainingMarket.sol";
import {Deployment} from "../../support/Deployment.sol";
import {vm} from "../../support/Vm.sol";
import {TraceTree} from "./TraceTree.sol";

/// @notice A market with its people, and the ways into the states of a task.
abstract contract TaskDriver is Deployment, IMarketTypes {
    address internal constant REQUESTER = address(0x4E9);
    address internal constant CHALLENGER = address(0xC4A1);
    address internal constant STRANGER = address(0x57A4);
    uint256 internal constant WORKER_KEY = 0x3041;
    uint160 internal constant FIRST_AUDITOR = 0xA0D170;

    uint96 internal constant REWARD = 1 ether;
    uint96 internal constant STAKE = 1 ether;
    uint96 internal constant FEE = 0.01 ether;
    /// @dev The seat bond, which pays both committees of referees.
    uint96 internal constant BOND = 0.09 ether;
    /// @dev The fees for which it does, and which are worth a seat.
    uint96 internal constant LEAST_FEE = BOND / 100;
    uint96 internal constant MOST_FEE = BOND / 8;
    uint96 internal constant PENALTY = STAKE / 5;
    uint96 internal constant AUDITOR_BOND = 1 ether;
    uint256 internal constant CREDIT = 50 ether;
    uint32 internal constant SEGMENTS = 9;
    uint256 internal constant AUDITORS = 12;
    bytes32 internal constant SALT = keccak256("salt");
    bytes32 internal constant CARD = keccak256("card");
    bytes32 internal constant PROFILE = keccak256("profile");

    ITrainingMarket internal market;

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        vm.roll(1_000);
        market = _deploy();
        _deposit(market, REQUESTER, CREDIT);
        _deposit(market, CHALLENGER, CREDIT);
        _enrol(4);
        _bondAuditors(AUDITORS);
        // Who came in the second of a call is not drawn.
        _wait(1);
    }

    // People

    function _worker(uint256 index) internal pure returns (address) {
        return vm.addr(WORKER_KEY + index);
    }

    function _auditor(uint256 index) internal pure returns (address) {
        return address(FIRST_AUDITOR + uint160(index));
    }

    /// @dev Registers the first `count` workers, as far as that has not happened, with credit.
    function _enrol(uint256 count) internal {
        for (uint256 i = 0; i < count; ++i) {
            if (market.worker(_worker(i)).envClass != 0) continue;
            _deposit(market, _worker(i), CREDIT);
            _register(market, _worker(i), 0);
        }
    }

    function _bondAuditors(uint256 count) internal {
        for (uint256 i = 0; i < count; ++i) {
            _deposit(market, _auditor(i), AUDITOR_BOND);
            _register(market, _auditor(i), AUDITOR_BOND);
        }
    }

    // Terms and claims

    function _terms(Policy policy) internal pure returns (Terms memory terms) {
        terms.manifest = keccak256("manifest");
        terms.envClass = ENV_CLASS;
        terms.policy = policy;
        terms.slots = 1;
        terms.quorum = 1;
        terms.reward = REWARD;
        terms.stake = STAKE;
        terms.joinFor = 1 hours;
        terms.trainFor = 1 days;
        terms.auditFor = 1 hours;
        terms.answerFor = 10 minutes;
        terms.challengeFor = 1 hours;
        if (policy == Policy.Replicate) return terms;
        terms.auditFee = FEE;
        if (policy == Policy.Audit) {
            terms.audits = 2;
            terms.segments = SEGMENTS;
        } else {
            terms.audits = 3;
            terms.minAudits = 1;
            terms.target = 900;
            terms.tolerance = 10;
        }
    }

    function _terms(Policy policy, uint8 slots) internal pure returns (Terms memory terms) {
        terms = _terms(policy);
        terms.slots = slots;
        if (policy == Policy.Replicate) terms.quorum = slots / 2 + 1;
    }

    /// @dev The states of the honest trace.
    function _states(uint32 segments) internal pure returns (bytes32[] memory states) {
        states = new bytes32[](uint256(segments) + 1);
        for (uint256 i = 0; i < states.length; ++i) states[i] = _state(i);
    }

    function _state(uint256 index) internal pure returns (bytes32) {
        return keccak256(abi.encode("state", index));
    }

    function _after(uint256 segment) internal pure returns (bytes32) {
        return _state(segment + 1);
    }

    function _proof(uint32 segments, uint256 segment) internal pure returns (bytes32[] memory) {
        return TraceTree.proof(_states(segments), segment + 1);
    }

    /// @dev The honest claim over the usual trace.
    function _claim() internal pure returns (Claim memory) {
        return _claim(SEGMENTS);
    }

    function _claim(uint32 segments) internal pure returns (Claim memory) {
        return Claim(keccak256("result"), TraceTree.root(_states(segments)), 0);
    }

    function _claimNamed(string memory name) internal pure returns (Claim memory) {
        return Claim(keccak256(abi.encode(name, "result")), keccak256(abi.encode(name, "root")), 0);
    }

    // Slots

    function _post(Terms memory terms) internal returns (TaskId) {
        vm.prank(REQUESTER);
        return market.post(terms);
    }

    function _join(TaskId id, address worker) internal {
        vm.prank(worker);
        market.join(id, CARD, new bytes32[](0));
    }

    /// @dev Worker i holds slot i.
    function _running(Terms memory terms) internal returns (TaskId id) {
        id = _post(terms);
        for (uint256 i = 0; i < terms.slots; ++i) _join(id, _worker(i));
    }

    function _submit(TaskId id, uint256 slot, Claim memory claim) internal {
        vm.prank(_worker(slot));
        market.submit(id, slot, claim.result, claim.root, new uint16[](0));
    }

    function _commitment(TaskId id, address worker, Claim memory claim) internal view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(market), id, worker, SALT, claim.result, claim.root));
    }

    function _commit(TaskId id, uint256 slot, Claim memory claim) internal {
        vm.prank(_worker(slot));
        market.commit(id, slot, _commitment(id, _worker(slot), claim));
    }

    function _reveal(TaskId id, uint256 slot, Claim memory claim) internal {
        vm.prank(STRANGER);
        market.reveal(id, slot, SALT, claim.result, claim.root);
    }

    /// @dev All slots have committed, each to its claim.
    function _revealing(Terms memory terms, Claim[] memory claims) internal returns (TaskId id) {
        id = _running(terms);
        for (uint256 i = 0; i < terms.slots; ++i) _commit(id, i, claims[i]);
    }

    /// @dev The claim is fixed: all slots claim the same, or each its own in a contest.
    function _submitted(Terms memory terms) internal returns (TaskId id) {
        if (terms.policy == Policy.Contest) {
            Claim[] memory claims = _entries(terms.slots);
            id = _revealing(terms, claims);
            for (uint256 i = 0; i < terms.slots; ++i) _reveal(id, i, claims[i]);
        } else {
            id = _running(terms);
            Claim memory claim = _claim(terms.segments);
            for (uint256 i = 0; i < terms.slots; ++i) _submit(id, i, claim);
        }
    }

    /// @dev A claim per slot, no two alike.
    function _entries(uint256 count) internal pure returns (Claim[] memory claims) {
        claims = new Claim[](count);
        for (uint256 i = 0; i < count; ++i) claims[i] = Claim(keccak256(abi.encode("entry", i)), bytes32(i), 0);
    }

    // Panels

    function _draw(TaskId id) internal {
        vm.roll(market.panel(id, OWN_PANEL, 0).drawBlock + 1);
        vm.prank(STRANGER);
        market.draw(id);
    }

    function _auditing(Terms memory terms) internal returns (TaskId id) {
        id = _submitted(terms);
        _draw(id);
    }

    function _seats(TaskId id) internal view returns (uint256) {
        return market.panel(id, OWN_PANEL, 0).seats;
    }

    function _seat(TaskId id, uint256 index) internal view returns (Seat memory) {
        return market.seat(id, OWN_PANEL, 0, index);
    }

    function _answer(TaskId id, uint32 segment, uint256 seat, address member, bytes32 answer)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(market), id, segment, seat, member, SALT, answer));
    }

    function _auditCommit(TaskId id, uint256 index, bytes32 answer) internal {
        address member = _seat(id, index).member;
        vm.prank(member);
        market.auditCommit(id, index, _answer(id, OWN_PANEL, index, member, answer));
    }

    function _auditReveal(TaskId id, uint256 index, bytes32 answer) internal {
        vm.prank(STRANGER);
        market.auditReveal(id, index, SALT, answer);
    }

    /// @dev All auditors have committed to the truth.
    function _opening(Terms memory terms) internal returns (TaskId id) {
        id = _auditing(terms);
        for (uint256 i = _seats(id); i > 0; --i) _auditCommit(id, i - 1, _after(_seat(id, i - 1).segment));
    }

    /// @dev All auditors have committed, the first of them to `answer` and the others to the truth.
    function _openingWith(Terms memory terms, bytes32 answer) internal returns (TaskId id) {
        id = _auditing(terms);
        _auditCommit(id, 0, answer);
        for (uint256 i = 1; i < _seats(id); ++i) _auditCommit(id, i, _after(_seat(id, i).segment));
    }

    function _openedStates(TaskId id, uint32 segments)
        internal
        view
        returns (bytes32[] memory states, bytes32[][] memory proofs)
    {
        uint256 seats = _seats(id);
        states = new bytes32[](seats);
        proofs = new bytes32[][](seats);
        for (uint256 i = 0; i < seats; ++i) {
            uint256 segment = _seat(id, i).segment;
            states[i] = _after(segment);
            proofs[i] = _proof(segments, segment);
        }
    }

    function _open(TaskId id, Claim memory claim) internal {
        uint32 segments = market.task(id).segments;
        (bytes32[] memory states, bytes32[][] memory proofs) = _openedStates(id, segments);
        vm.prank(STRANGER);
        market.open(id, claim, states, proofs);
    }

    function _window(Terms memory terms) internal returns (TaskId id) {
        id = _opening(terms);
        _open(id, _claim(terms.segments));
    }

    /// @dev All auditors have revealed that they agree; the window is open.
    function _audited(Terms memory terms) internal returns (TaskId id) {
        id = _window(terms);
        for (uint256 i = 0; i < _seats(id); ++i) _auditReveal(id, i, _after(_seat(id, i).segment));
    }

    function _scoreCommit(TaskId id, uint256 index, uint32[] memory scores) internal {
        _auditCommit(id, index, keccak256(abi.encode(scores)));
    }

    function _scoreReveal(TaskId id, uint256 index, uint32[] memory scores) internal {
        vm.prank(STRANGER);
        market.scoreReveal(id, index, SALT, scores);
    }

    /// @dev All evaluators have committed and revealed, seat i the scores of row i.
    function _scored(Terms memory terms, uint32[][] memory rows) internal returns (TaskId id) {
        id = _auditing(terms);
        for (uint256 i = 0; i < rows.length; ++i) _scoreCommit(id, i, rows[i]);
        for (uint256 i = 0; i < rows.length; ++i) _scoreReveal(id, i, rows[i]);
    }

    // Time

    function _now() internal view returns (uint256) {
        return vm.getBlockTimestamp();
    }

    function _wait(uint256 duration) internal {
        vm.warp(_now() + duration);
    }

    function _passDeadline(TaskId id) internal {
        vm.warp(market.task(id).deadline);
    }

    function _expire(TaskId id) internal {
        vm.prank(STRANGER);
        market.expire(id);
    }

    function _settle(TaskId id) internal {
        vm.prank(STRANGER);
        market.settle(id);
    }

    // What is refused

    /// @dev `call` by `who` fails with exactly `reason` and so changes nothing.
    function _refused(address who, bytes memory call, bytes memory reason) internal {
        vm.prank(who);
        (bool done, bytes memory answer) = address(market).call(call);
        vm.assertFalse(done, "was not refused");
        vm.assertEq(answer, reason);
    }

    function _unexpectedState(TaskId id, TaskState state) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IMarketTypes.MarketUnexpectedState.selector, id, state);
    }

    function _tooEarly(TaskId id, uint256 opensAt) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IMarketTypes.MarketTooEarly.selector, id, opensAt);
    }

    function _tooLate(TaskId id, uint256 deadline) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IMarketTypes.MarketTooLate.selector, id, deadline);
    }

    function _wrongPolicy(TaskId id, Policy policy) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IMarketTypes.MarketWrongPolicy.selector, id, policy);
    }
}
