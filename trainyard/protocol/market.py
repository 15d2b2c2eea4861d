"""The market's nouns, as `contracts/interfaces/IMarketTypes.sol` has them.

A test compares every enum and every struct here with its Solidity twin.
"""

from dataclasses import astuple, dataclass, fields
from enum import IntEnum

BPS = 10_000
MAX_SLOTS = 32
MAX_SEATS = 15
# Names a task's own panel where referees' panels are named by their segment.
OWN_PANEL = 2**32 - 1
# What a member answers when the data that it needs was not served.
UNSERVED = bytes(32)
BURN_ADDRESS = "0x000000000000000000000000000000000000dEaD"
NATIVE_CURRENCY = "0x0000000000000000000000000000000000000000"


class Policy(IntEnum):
    REPLICATE = 0
    AUDIT = 1
    SCORE = 2
    CONTEST = 3


class TaskState(IntEnum):
    NONE = 0
    OPEN = 1
    RUNNING = 2
    REVEALING = 3
    SUBMITTED = 4
    AUDITING = 5
    OPENING = 6
    WINDOW = 7
    DISPUTED = 8
    SETTLED = 9
    FAILED = 10
    CANCELLED = 11


class Failure(IntEnum):
    NO_QUORUM = 0
    FRAUD = 1
    WITHHELD = 2
    INCONCLUSIVE = 3
    UNAUDITED = 4
    BELOW_TARGET = 5


class SeatState(IntEnum):
    NONE = 0
    DRAWN = 1
    COMMITTED = 2
    REVEALED = 3
    CLOSED = 4


class DisputeState(IntEnum):
    NONE = 0
    UNSERVED = 1
    CALLED = 2
    HEARING = 3
    RULING = 4
    UPHELD = 5
    REJECTED = 6
    DISMISSED = 7
    INCONCLUSIVE = 8
    VOID = 9


class Record(IntEnum):
    SETTLED = 0
    FAILED = 1
    AUDIT_RIGHT = 2
    AUDIT_WRONG = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a requester offers. Amounts in the market's smallest unit, times in seconds."""

    manifest: bytes
    env_class: bytes
    allow_list: bytes = bytes(32)
    policy: Policy
    slots: int = 1
    quorum: int = 1
    audits: int = 0
    min_audits: int = 0
    shares_agreed: bool = False
    min_settled: int = 0
    reward: int
    stake: int
    audit_fee: int = 0
    segments: int = 0
    target: int = 0
    tolerance: int = 0
    join_for: int = 3_600
    train_for: int = 86_400
    audit_for: int = 3_600
    answer_for: int = 600
    challenge_for: int = 3_600

    @property
    def escrow(self) -> int:
        return self.reward * self.slots + self.audit_fee * self.audits

    def as_tuple(self) -> tuple[bytes | int | bool, ...]:
        return astuple(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Parameters of a market, fixed for a task when it is posted."""

    seat_bond: int
    unbond_for: int
    fault_bps: int
    finder_bps: int
    requester_bps: int
    referees: int
    escalation: int
    draw_delay: int
    min_window: int

    def as_tuple(self) -> tuple[int, ...]:
        return astuple(self)

    def referee_cost(self, audit_fee: int) -> int:
        """The fees of both committees; the seat bond must cover them."""
        return (self.referees + self.escalation) * audit_fee


def solidity_name(python_name: str) -> str:
    """`min_audits` as Solidity spells it: `minAudits`."""
    head, *rest = python_name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def solidity_fields(struct: type[Terms] | type[Params]) -> list[str]:
    return [solidity_name(field.name) for field in fields(struct)]
