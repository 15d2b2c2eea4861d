"""What the market knows, as values: the twin of `contracts/market/MarketStorage.sol`.

Fields are named like those of the Solidity structs. A few, marked "only in events", are known to
readers of events and kept nowhere on chain.
"""

from dataclasses import dataclass, field

from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import (
    OWN_PANEL,
    DisputeState,
    Failure,
    Params,
    SeatState,
    TaskState,
    Terms,
)

ZERO_WORD = bytes(32)
_OWN = (OWN_PANEL, 0)


@dataclass(slots=True)
class Account:
    credit: int = 0
    settled: int = 0
    failed: int = 0
    audits_right: int = 0
    audits_wrong: int = 0


@dataclass(slots=True)
class Worker:
    # Zero for a worker that has retired.
    env_class: bytes
    profile: bytes
    bond: int = 0
    bond_locked: int = 0
    # Counted from one; zero for a worker that is in no pool.
    pool_index: int = 0
    since: int = 0
    unbonds_at: int = 0
    min_fee: int = 0
    min_audit_for: int = 0
    min_answer_for: int = 0
    unbond_for: int = 0


@dataclass(slots=True)
class Slot:
    # Stays after leaving or eviction, until somebody else takes the slot.
    worker: str | None = None
    pong_by: int = 0
    quiet_until: int = 0
    digest: bytes = ZERO_WORD
    # Only in events.
    peer_card: bytes = ZERO_WORD
    claim: Claim | None = None
    shares: tuple[int, ...] = ()


@dataclass(slots=True)
class Seat:
    member: str
    segment: int
    state: SeatState = SeatState.DRAWN
    answer: bytes = ZERO_WORD
    opened: bytes = ZERO_WORD
    scores: tuple[int, ...] = ()


@dataclass(slots=True)
class Panel:
    draw_block: int = 0
    called_at: int = 0
    reveal_by: int = 0
    pool: int = 0
    committed: int = 0
    revealed: int = 0
    # Open disputes of the task; only in the task's own panel.
    disputes: int = 0
    # Kept by a draw that waits for members; zero otherwise.
    seed: bytes = ZERO_WORD
    seats: list[Seat] = field(default_factory=list)
    # Only in events: seats for which nobody was found.
    unassigned: int = 0


@dataclass(slots=True)
class Dispute:
    accuser: str | None = None
    deadline: int = 0
    state: DisputeState = DisputeState.NONE
    # Counted from one; zero for a challenger.
    audit_seat: int = 0
    escalated: bool = False
    # Whether it began as a claim that data is not served.
    unserved: bool = False
    round: int = 0
    bond: int = 0
    claimed: bytes = ZERO_WORD
    # What the referees found.
    truth: bytes = ZERO_WORD


@dataclass(slots=True)
class Task:
    requester: str
    params_id: int
    terms: Terms
    deadline: int
    state: TaskState = TaskState.OPEN
    locked: int = 0
    # Bitmaps of slots.
    joined: int = 0
    answered: int = 0
    revealed: int = 0
    lead: int = 0
    slots: list[Slot] = field(default_factory=list)
    # By segment and round of the committee; the task's own panel stands at _OWN.
    panels: dict[tuple[int, int], Panel] = field(default_factory=lambda: {_OWN: Panel()})
    disputes: dict[int, Dispute] = field(default_factory=dict)
    # Only in events.
    failure: Failure | None = None

    @property
    def listed(self) -> bool:
        """Whether only workers on the requester's list may join."""
        return self.terms.allow_list != ZERO_WORD

    @property
    def own_panel(self) -> Panel:
        return self.panels[_OWN]


@dataclass(slots=True)
class Book:
    """A whole market. Addresses are spelled as its events spell them."""

    owed: int = 0
    owner: str | None = None
    pending_owner: str | None = None
    paused: bool = False
    params: list[Params] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    # Members by class, each at its `pool_index`.
    pools: dict[bytes, list[str]] = field(default_factory=dict)
    # The ids of tasks count from one without a gap.
    tasks: dict[int, Task] = field(default_factory=dict)

    def account(self, who: str) -> Account:
        return self.accounts.setdefault(who, Account())

    def pool(self, env_class: bytes) -> list[str]:
        return self.pools.setdefault(env_class, [])
