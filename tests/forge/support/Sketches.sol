// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Hashes} from "@openzeppelin/contracts/utils/cryptography/Hashes.sol";
import {Book} from "./Book.sol";
import {Secrets} from "./Secrets.sol";

/// @notice Terms, claims and answers by chance: most of them sane, so that tasks get far.
abstract contract Sketches is Book {
    bytes32 internal constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 internal constant COMMITMENT_TYPE =
        keccak256("Commitment(uint256 task,uint256 slot,bytes32 commitment,uint256 deadline)");
    bytes32 internal constant SUBMISSION_TYPE = keccak256(
        "Submission(uint256 task,uint256 slot,bytes32 result,bytes32 root,bytes32 shares,uint256 deadline)"
    );

    /// @dev The two actors whom an allow-list names.
    mapping(bytes32 root => address[2]) private _allowed;

    function _sketchTerms() internal returns (Terms memory t) {
        uint256 policy = _roll(7);
        t.policy = Policy(policy < 4 ? policy : uint256(Policy.Audit));
        t.manifest = "manifest";
        t.envClass = _once(5) ? SMALL_CLASS : LARGE_CLASS;
        t.slots = uint8(1 + _roll(4));
        t.reward = uint96(_roll(1 ether));
        _sketchVerification(t);
        t.minSettled = _once(16) ? 1 : 0;
        if (t.slots < 3 && _once(6)) t.allowList = _sketchAllowList();
        // Long where all tasks wait, short where one is driven through: its time passes for the others too.
        t.joinFor = uint32(5 days + _roll(40 days));
        t.trainFor = uint32(5 days + _roll(40 days));
        t.auditFor = uint32(1 days + _roll(6 days));
        t.answerFor = uint32(1 days + _roll(6 days));
        t.challengeFor = _once(5) ? 0 : uint32(_roll(1 days));
        if (_once(32)) _spoil(t);
    }

    function _sketchVerification(Terms memory t) private {
        Params memory p = market.params(market.paramsCount() - 1);
        // From the least fee that a bond is locked for to less than what fourteen referees may cost.
        t.auditFee = uint96(p.seatBond / 100 + 1 + _roll(p.seatBond / 20));
        t.quorum = uint8(1 + _roll((uint256(t.slots) + 1) / 2));
        t.stake = uint96(_roll(0.5 ether));
        if (t.policy == Policy.Replicate) {
            t.quorum = uint8(t.slots / 2 + 1 + _roll(t.slots - t.slots / 2));
            t.auditFee = 0;
        } else if (t.policy == Policy.Audit) {
            t.segments = uint32(1 + _roll(9));
            t.audits = uint8(_roll(5));
            uint256 most = t.segments < 2 ? t.segments : t.segments / 2;
            if (_once(4)) t.minAudits = uint8(_roll((t.audits < most ? t.audits : most) + 1));
            t.stake += uint96((uint256(p.referees) + p.escalation) * t.auditFee / t.quorum + 1);
            t.sharesAgreed = _once(3);
        } else {
            t.audits = uint8(1 + 2 * _roll(3));
            t.minAudits = uint8(1 + (_once(4) ? _roll(t.audits) : 0));
            t.target = Secrets.TARGET;
            t.tolerance = uint32(_roll(60));
            t.sharesAgreed = t.policy == Policy.Score && _once(3);
        }
    }

    function _spoil(Terms memory t) private {
        uint256 field = _roll(6);
        if (field == 0) t.slots = 33;
        else if (field == 1) t.quorum = t.slots + 1;
        else if (field == 2) t.audits = 16;
        else if (field == 3) t.segments = t.segments == 0 ? 1 : 0;
        else if (field == 4) t.answerFor = 0;
        else t.reward = type(uint96).max;
    }

    // Allow-lists of two

    function _sketchAllowList() private returns (bytes32 root) {
        address[2] memory pair = [_anyone(), _anyone()];
        root = Hashes.commutativeKeccak256(_leafOf(pair[0]), _leafOf(pair[1]));
        _allowed[root] = pair;
    }

    function _isAllowed(bytes32 root, address actor) internal view returns (bool) {
        return root == 0 || _allowed[root][0] == actor || _allowed[root][1] == actor;
    }

    function _proofOf(bytes32 root, address actor) internal view returns (bytes32[] memory proof) {
        if (root == 0) return proof;
        proof = new bytes32[](1);
        proof[0] = _leafOf(_allowed[root][_allowed[root][0] == actor ? 1 : 0]);
    }

    function _leafOf(address actor) private pure returns (bytes32) {
        return keccak256(bytes.concat(keccak256(abi.encode(actor))));
    }

    // Claims and answers

    /// @dev Slots of a task mostly claim the same, which is a fraud every other time.
    function _sketchKind(uint256 id) internal returns (Secrets.Kind) {
        if (_once(8)) return Secrets.Kind.Dissent;
        uint256 mood = uint256(keccak256(abi.encode(id, "mood"))) % 12;
        if (mood == 0) return Secrets.Kind.Empty;
        return mood < 6 ? Secrets.Kind.Fraud : Secrets.Kind.Honest;
    }

    /// @dev Most panels are honest by and large. Some side with the workers, or find their result poor;
    /// and some are chaos, so that committees find no majority.
    function _sketchAnswer(uint256 id, uint32 segment) internal returns (Secrets.Answer) {
        uint256 mood = uint256(keccak256(abi.encode(id, segment, "mood"))) % 6;
        if (mood == 0) return Secrets.Answer(1 + _roll(4));
        if (_once(8)) return Secrets.Answer(2 + _roll(3));
        return mood == 1 ? Secrets.Answer.Claimed : Secrets.Answer.Truth;
    }
}
