// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The nouns of the market
/// @notice Types and errors that every part of the market shares.
/// @dev Time: an act with a deadline is allowed while `block.timestamp < deadline`; what follows the
/// deadline is allowed from `block.timestamp >= deadline` on. There is neither a gap nor an overlap.
interface IMarketTypes {
    type TaskId is uint256;

    /// @notice How the work of a task is verified before anyone is paid.
    enum Policy {
        /// Every slot trains the whole task alone; the largest group of equal results wins.
        Replicate,
        /// The slots share one trace; drawn auditors recompute drawn segments blind.
        Audit,
        /// The slots share one result; drawn evaluators measure it against a target.
        Score,
        /// Every slot enters a result of its own; drawn evaluators pick the best.
        Contest
    }

    enum TaskState {
        None,
        /// Slots are being filled.
        Open,
        /// All slots were filled: workers train.
        Running,
        /// Commitments are in and are being revealed (Replicate, Contest).
        Revealing,
        /// The claim is fixed and waits for the draw (Audit, Score, Contest).
        Submitted,
        /// Drawn auditors or evaluators commit their answers blind.
        Auditing,
        /// The workers must open the leaves of the drawn segments (Audit).
        Opening,
        /// Answers are revealed; under Audit anyone may challenge any segment.
        Window,
        /// As Window, with at least one dispute before the referees.
        Disputed,
        Settled,
        Failed,
        Cancelled
    }

    /// @notice Why a task ended without a result that is paid for.
    enum Failure {
        /// Too few slots answered alike, or in time.
        NoQuorum,
        /// Referees found a segment wrong, or its data withheld.
        Fraud,
        /// The workers never opened the drawn leaves, or never served a claimed one.
        Withheld,
        /// Two committees of referees found no majority.
        Inconclusive,
        /// Fewer auditors could be drawn than the requester had demanded, or none answered.
        Unaudited,
        /// The evaluators' median missed the target.
        BelowTarget
    }

    enum SeatState {
        None,
        Drawn,
        Committed,
        Revealed,
        Closed
    }

    enum DisputeState {
        None,
        /// Somebody says that the segment's data is withheld; the workers must show the leaf.
        Unserved,
        /// Waits for the draw of a committee.
        Called,
        /// Referees commit.
        Hearing,
        /// Referees reveal.
        Ruling,
        /// The accuser was right.
        Upheld,
        /// The accuser was wrong.
        Rejected,
        /// Too few referees were free; nobody is judged.
        Dismissed,
        /// Both committees were without a majority.
        Inconclusive,
        /// The task ended through another dispute first.
        Void
    }

    /// @notice An event in a worker's record.
    enum Record {
        Settled,
        Failed,
        AuditRight,
        AuditWrong
    }

    /// @notice What a requester offers. Amounts are in the market's currency, times in seconds.
    /// @param manifest sha2-256 digest of the manifest document
    /// @param envClass environment class of auditors, and of workers unless the policy scores
    /// @param allowList root of an OpenZeppelin standard Merkle tree of `(address)`, or zero for all
    /// @param slots number of workers, 1 to 32
    /// @param quorum slots that must agree on the claim; more than half of them under Replicate
    /// @param audits auditors or evaluators to draw
    /// @param minAudits auditors that must be drawn, or else everyone is refunded
    /// @param sharesAgreed rewards follow shares that the slots sign, not equal parts
    /// @param minSettled settled tasks that a worker must have on record
    /// @param reward per slot; a contest pays all of it to the winner
    /// @param stake per slot
    /// @param auditFee per audit, evaluation or referee's recomputation; the fees of both committees of
    /// referees must fit the seat bond
    /// @param segments length of the trace (Audit)
    /// @param target lowest median score that is paid (Score, Contest)
    /// @param tolerance how far from the median an evaluator may be and still count as right
    /// @param joinFor time to fill the slots
    /// @param trainFor time to train and answer, from the last join on
    /// @param auditFor time to recompute a segment or to score a result, before committing
    /// @param answerFor time for pong, reveal, open and serve
    /// @param challengeFor time to challenge segments, from the opening on; may be zero
    struct Terms {
        bytes32 manifest;
        bytes32 envClass;
        bytes32 allowList;
        Policy policy;
        uint8 slots;
        uint8 quorum;
        uint8 audits;
        uint8 minAudits;
        bool sharesAgreed;
        uint32 minSettled;
        uint96 reward;
        uint96 stake;
        uint96 auditFee;
        uint32 segments;
        uint32 target;
        uint32 tolerance;
        uint32 joinFor;
        uint32 trainFor;
        uint32 auditFor;
        uint32 answerFor;
        uint32 challengeFor;
    }

    /// @notice A task in storage: one word that changes, three of terms, three of digests.
    /// @param locked escrow and stakes that the task still holds
    /// @param deadline end of the present state, in seconds
    /// @param joined bitmap of occupied slots
    /// @param answered bitmap of slots that submitted or committed
    /// @param revealed bitmap of slots that revealed
    /// @param lead a slot that holds the claim under audit, or the winning one; zero before that
    /// @param listed whether there is an allow-list
    /// @param paramsId version of the market's parameters that the task runs under
    struct Task {
        uint96 locked;
        uint40 deadline;
        TaskState state;
        uint32 joined;
        uint32 answered;
        uint32 revealed;
        uint8 lead;
        Policy policy;
        address requester;
        uint8 slots;
        uint8 quorum;
        uint8 audits;
        uint8 minAudits;
        bool sharesAgreed;
        bool listed;
        uint16 paramsId;
        uint32 minSettled;
        uint96 reward;
        uint96 stake;
        uint32 segments;
        uint32 target;
        uint96 auditFee;
        uint32 trainFor;
        uint32 auditFor;
        uint32 answerFor;
        uint32 challengeFor;
        uint32 tolerance;
        bytes32 manifest;
        bytes32 envClass;
        bytes32 allowList;
    }

    /// @param worker who holds the slot, or held it when the task ended
    /// @param pongBy when the worker must have answered a ping; zero if nobody asks
    /// @param quietUntil until when the worker may not be asked again
    /// @param digest the commitment, and once revealed or submitted the digest of the claim
    struct Slot {
        address worker;
        uint40 pongBy;
        uint40 quietUntil;
        bytes32 digest;
    }

    /// @notice What a worker signs: a result, the trace behind it, and how to share the reward.
    /// @param result digest of the result manifest
    /// @param root Merkle root of the trace
    /// @param shares keccak256 of the packed shares, or zero for equal parts
    struct Claim {
        bytes32 result;
        bytes32 root;
        bytes32 shares;
    }

    /// @notice Money and record of an account: one word.
    struct Account {
        uint128 credit;
        uint32 settled;
        uint32 failed;
        uint32 auditsRight;
        uint32 auditsWrong;
    }

    /// @param bond what the worker put down to be drawn as auditor and referee
    /// @param bondLocked part of the bond that stands behind seats
    /// @param poolIndex place in the class's pool, counted from one; zero if not in it
    /// @param since since when the worker may be drawn on its present terms (lasts until 2106)
    /// @param envClass environment class; zero when not registered
    /// @param profile digest of the profile document
    /// @param unbondsAt when a retired worker may take the bond back
    /// @param minFee lowest fee for which the worker may be drawn
    /// @param minAuditFor shortest time to recompute for which the worker may be drawn
    /// @param minAnswerFor shortest time to reveal for which the worker may be drawn
    /// @param unbondFor unbonding delay, as it was when the worker put down its bond
    struct Worker {
        uint96 bond;
        uint96 bondLocked;
        uint32 poolIndex;
        uint32 since;
        bytes32 envClass;
        bytes32 profile;
        uint40 unbondsAt;
        uint96 minFee;
        uint32 minAuditFor;
        uint32 minAnswerFor;
        uint32 unbondFor;
    }

    /// @notice A group of drawn members that answers blind: auditors, evaluators or referees.
    /// @param drawBlock block whose hash draws the seats
    /// @param calledAt members must have been in the pool before this time
    /// @param revealBy end of revealing
    /// @param pool length of the pool when the panel was called
    /// @param disputes open disputes of the task (only in the task's own panel)
    /// @param seed what draws the seats, kept if members have to be waited for
    struct Panel {
        uint40 drawBlock;
        uint40 calledAt;
        uint40 revealBy;
        uint32 pool;
        uint8 seats;
        uint8 committed;
        uint8 revealed;
        uint32 disputes;
        bytes32 seed;
    }

    /// @param segment which segment the member recomputes
    /// @param answer the commitment, then the revealed answer
    /// @param opened what the workers opened for the segment (auditors' seats)
    struct Seat {
        address member;
        uint32 segment;
        SeatState state;
        bytes32 answer;
        bytes32 opened;
    }

    /// @param accuser who gains if the workers are wrong, and pays if they are right
    /// @param deadline end of the present state, in seconds
    /// @param auditSeat seat of the accusing auditor counted from one; zero for a challenger
    /// @param escalated whether the second, larger committee sits
    /// @param unserved whether it began as a claim that data is not served
    /// @param round number of the present committee: one, or two if escalated; zero before the first
    /// @param bond what a challenger put down
    /// @param claimed the state after the segment according to the workers' trace
    /// @param truth the state after the segment according to the referees; zero if it was not served
    struct Dispute {
        address accuser;
        uint40 deadline;
        DisputeState state;
        uint8 auditSeat;
        bool escalated;
        bool unserved;
        uint32 round;
        uint96 bond;
        bytes32 claimed;
        bytes32 truth;
    }

    /// @notice Parameters of the market. A task keeps the version that it was posted under.
    /// @param seatBond bond behind a seat or a challenge
    /// @param unbondFor time between retiring and taking the bond back, in seconds
    /// @param faultBps part of a stake or bond lost by a fault: absence, silence, disagreement
    /// @param finderBps part of slashed money for whoever found the wrong
    /// @param requesterBps part of slashed money for the requester; the rest is burned
    /// @param referees size of the first committee
    /// @param escalation size of the second committee
    /// @param drawDelay blocks between the call of a panel and the block that draws it
    /// @param minWindow shortest time that a task may give for an answer whose absence costs money
    struct Params {
        uint96 seatBond;
        uint32 unbondFor;
        uint16 faultBps;
        uint16 finderBps;
        uint16 requesterBps;
        uint8 referees;
        uint8 escalation;
        uint8 drawDelay;
        uint32 minWindow;
    }

    error MarketUnexpectedState(TaskId id, TaskState state);
    error MarketTooEarly(TaskId id, uint256 opensAt);
    error MarketTooLate(TaskId id, uint256 deadline);
    error MarketWrongPolicy(TaskId id, Policy policy);
    error MarketNoCode(address part);
    error MarketWrongClaim(TaskId id, bytes32 digest);
    error MarketNotSlotHolder(TaskId id, uint256 slot, address caller);
    error MarketAlreadyAnswered(TaskId id, uint256 slot);
}
