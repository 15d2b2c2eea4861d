// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IMarketTypes} from "./IMarketTypes.sol";

/// @title Draws, blind audits, challenges and referees
/// @notice Answers are blind: each is committed before anything that could be copied is public. An
/// auditor answers with the hash of the state after its segment, or with zero if the segment's data
/// was not served; the workers' own hashes are opened only when the answers are committed.
interface IDisputes is IMarketTypes {
    /// @param segment which dispute the panel serves; `type(uint32).max` for the task's own auditors
    event SeatDrawn(
        TaskId indexed id, uint256 segment, uint256 round, uint256 seat, address indexed member, uint256 duty, uint256 bond
    );
    /// @notice `missing` seats could not be filled; their fees go back to who paid for them.
    event SeatsUnassigned(TaskId indexed id, uint256 segment, uint256 round, uint256 missing);
    /// @notice Drawn members are busy, or too few were found: the draw waits, and keeps what was drawn.
    event SeatsAwaited(TaskId indexed id, uint256 segment, uint256 round, bytes32 seed, uint256 found);
    event DrawPostponed(TaskId indexed id, uint256 segment, uint256 round, uint256 drawBlock);
    event AuditStarted(TaskId indexed id, uint256 seats, uint256 commitBy);
    event AuditCommitted(TaskId indexed id, uint256 seat, bytes32 commitment);
    event OpeningStarted(TaskId indexed id, uint256 openBy);
    event WindowStarted(TaskId indexed id, bytes32[] states, uint256 revealBy, uint256 challengeBy);
    event AuditRevealed(TaskId indexed id, uint256 seat, bytes32 answer);
    event ScoresRevealed(TaskId indexed id, uint256 seat, uint32[] scores);
    event SeatClosed(
        TaskId indexed id, uint256 segment, uint256 round, uint256 seat, address indexed member, uint256 bond, uint256 slashed
    );
    event SegmentChallenged(
        TaskId indexed id, uint256 indexed segment, address indexed accuser, uint256 auditSeat, uint256 bond, bytes32 claimed, uint256 serveBy
    );
    event SegmentServed(TaskId indexed id, uint256 indexed segment, bytes32 claimed);
    /// @param dismissAt from when on the dispute is dismissed if too few referees are free
    event RefereesCalled(
        TaskId indexed id, uint256 indexed segment, uint256 round, uint256 drawBlock, uint256 pool, uint256 calledAt, uint256 dismissAt
    );
    event HearingStarted(TaskId indexed id, uint256 indexed segment, uint256 round, uint256 seats, uint256 commitBy);
    event RefereeCommitted(TaskId indexed id, uint256 indexed segment, uint256 round, uint256 seat, bytes32 commitment);
    event RulingStarted(TaskId indexed id, uint256 indexed segment, uint256 round, uint256 revealBy);
    event RefereeRevealed(TaskId indexed id, uint256 indexed segment, uint256 round, uint256 seat, bytes32 answer);
    event DisputeResolved(TaskId indexed id, uint256 indexed segment, DisputeState outcome, bytes32 truth);

    error MarketDrawPending(TaskId id, uint256 drawBlock);
    error MarketNotSeatHolder(TaskId id, uint256 seat, address caller);
    error MarketUnexpectedSeat(TaskId id, uint256 seat, SeatState state);
    error MarketWrongAnswer(TaskId id, uint256 seat);
    error MarketWrongProof(TaskId id, uint256 segment);
    error MarketNoSuchSegment(TaskId id, uint256 segment);
    error MarketUnexpectedDispute(TaskId id, uint256 segment, DisputeState state);
    error MarketWrongLength(uint256 given, uint256 expected);

    /// @notice Draws the auditors of a submitted task by the hash of a later block.
    /// @dev A draw whose block is out of reach is postponed to a new block. A seat whose member is busy
    /// goes to nobody else: it is waited for until `drawBy`, or else keeping honest members busy would
    /// hand their seats to others. Too few auditors never block a task: after `drawBy` fewer audits are
    /// made, or, if the requester demanded more, all get their money back.
    function draw(TaskId id) external;

    /// @notice Commits a drawn auditor's or evaluator's answer.
    function auditCommit(TaskId id, uint256 seat, bytes32 commitment) external;

    /// @notice Opens the workers' states after the drawn segments. Anyone who knows them may call.
    /// @param states per seat the hash of the state after its segment
    function open(TaskId id, Claim calldata claim, bytes32[] calldata states, bytes32[][] calldata proofs) external;

    /// @notice Reveals an auditor's answer. An answer that differs from the workers' is a dispute.
    function auditReveal(TaskId id, uint256 seat, bytes32 salt, bytes32 answer) external;

    /// @notice Reveals an evaluator's scores, one per slot in a contest, otherwise one.
    function scoreReveal(TaskId id, uint256 seat, bytes32 salt, uint32[] calldata scores) external;

    /// @notice Says that the workers' state after `segment` is wrong. A segment is disputed once. A bond of `bondOf(id)` is
    /// taken from the caller's credit.
    function challenge(
        TaskId id, uint32 segment, Claim calldata claim, bytes32 state, bytes32[] calldata proof
    ) external;

    /// @notice Says that the data of `segment` is not served. A bond of `bondOf(id)` is
    /// taken from the caller's credit.
    function challengeUnserved(TaskId id, uint32 segment) external;

    /// @notice Answers `challengeUnserved` with the leaf; referees then try to fetch the data.
    function serve(
        TaskId id, uint32 segment, Claim calldata claim, bytes32 state, bytes32[] calldata proof
    ) external;

    /// @notice Draws the committee of a dispute by the hash of a later block.
    /// @dev Too few free referees are waited for until every other dispute of the task can have ended. After
    /// that a challenger's dispute is dismissed; what an auditor contested ends the task, all refunded.
    function drawReferees(TaskId id, uint32 segment) external;

    function refereeCommit(TaskId id, uint32 segment, uint256 seat, bytes32 commitment) external;
    function refereeReveal(TaskId id, uint32 segment, uint256 seat, bytes32 salt, bytes32 answer) external;

    /// @notice Moves a dispute on: to the ruling, to a larger committee, or to its end.
    function resolve(TaskId id, uint32 segment) external;

    /// @notice What a member commits to.
    /// @param segment the disputed segment, or `type(uint32).max` for the task's own auditors
    function answerCommitment(
        TaskId id, uint32 segment, uint256 seat, address member, bytes32 salt, bytes32 answer
    ) external view returns (bytes32);
}
