"""All that a decision depends on."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from trainyard.chain.calls import Call, MarketCalls, bond_of, withdrawal_of
from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.ledger.book import Book, Task
from trainyard.protocol.market import Policy as TaskPolicy
from trainyard.protocol.market import TaskState
from worker_agent.limits import Limits
from worker_agent.policy import Policy
from worker_agent.progress import NONE, Progress

ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
# Who comes next waits so long before it does what anyone may do.
TURN_S = 20
# In the keys of what puts money down.
_PAID = frozenset({"register", "bond", "join", "accuse", "challenge"})


@dataclass(frozen=True, slots=True)
class Ended:
    """When a task was first seen to be over: the chain's time, and its head."""

    at: int
    block: int


@dataclass(frozen=True, slots=True)
class Situation:
    """The chain as it is seen, what is done so far, and what the operator wants."""

    me: str
    market: Market
    book: Book
    # The chain's time, and its head.
    now: int
    block: int
    # The wall clock, by which failed work is tried again.
    clock: float
    policy: Policy
    env_class: bytes
    progress: Mapping[int, Progress]
    # What the account holds beside its credit: for stakes, and for the fees of all that is sent.
    purse: int
    # What a unit of gas costs now, with the tip that would be offered.
    gas_price: int = field(default=0, kw_only=True)
    # Whether others can fetch what we have: evidence that nobody can is as good as none.
    is_served: bool = field(default=True, kw_only=True)
    # What was signed and shows in no book yet, by its key.
    pending: Mapping[str, Call] = field(default_factory=dict, kw_only=True)
    # What the sandbox lets a task use.
    sandbox: Limits = field(default=Limits(), kw_only=True)
    # A secret of the account for each seat, always the same.
    salt: Callable[[int, tuple[int, int], int], bytes]
    profile: bytes = b""
    payout: str | None = None
    # Of tasks that we wanted to join and could not: why, and what would change that.
    hindered: Mapping[int, tuple[str, str]] = field(default_factory=dict, kw_only=True)
    # What stays as credit when earnings are paid out; None for as much as was needed so far.
    payout_float: int | None = None
    margin_s: float = 30.0
    # How many blocks deep something has to lie before it counts on staying.
    confirmations: int = 1
    # And a post, before a task is joined: a join names the number only, and not what was posted.
    join_confirmations: int = field(default=1, kw_only=True)
    # The blocks in which tasks were posted, and opened to challenges; what is missing lies deep.
    posted: Mapping[int, int] = field(default_factory=dict, kw_only=True)
    opened: Mapping[int, int] = field(default_factory=dict, kw_only=True)
    # How often we took our bond back, by our own journal: what we sent before belongs to before.
    retired: int = 0
    # Takes nothing new.
    is_paused: bool = False
    # Other agents of this machine have their turn: takes nothing new for now.
    is_crowded: bool = False
    # And will end when nothing is under way: it wants to be drawn no more.
    is_draining: bool = False
    # Of tasks that are over, those that have left something here.
    ended: Mapping[int, Ended] = field(default_factory=dict)
    # And those that have not: there are ever more of them.
    gone: Container[int] = frozenset()

    @property
    def calls(self) -> MarketCalls:
        return MarketCalls(self.market.address)

    @property
    def credit(self) -> int:
        """What the market owes the account, and will when all that is under way is mined."""
        account = self.book.accounts.get(self.me)
        leaving = 0
        for call in self.pending.values():
            leaving += withdrawal_of(call) + max(0, bond_of(call) - call.value)
        for number, call in self._under_way("join/"):
            leaving += max(0, self.book.tasks[number].terms.stake - call.value)
        for number, call in self._under_way("challenge/"):
            bond = self.book.params[self.book.tasks[number].params_id].seat_bond
            leaving += max(0, bond - call.value)
        return 0 if account is None else max(0, account.credit - leaving)

    @property
    def joining(self) -> frozenset[int]:
        """The tasks that we have asked to join, and may or may not be in."""
        return frozenset(number for number, _ in self._under_way("join/"))

    @property
    def is_paying(self) -> bool:
        """Whether money is on its way into the market: nobody counts on the same twice."""
        return any(not _PAID.isdisjoint(key.split("/")[:2]) for key in self.pending)

    def _under_way(self, begins: str) -> Iterator[tuple[int, Call]]:
        for key, call in self.pending.items():
            number, _, what = key.partition("/")
            # A reorg may have taken the task itself.
            if what.startswith(begins) and int(number) in self.book.tasks:
                yield int(number), call

    def of(self, task: int) -> Progress:
        return self.progress.get(task, NONE)

    def may_try(self, task: int, work: str) -> bool:
        failure = self.of(task).failures.get(work)
        return failure is None or failure.is_due(self.clock)

    def in_time(self, deadline: int) -> bool:
        """Whether what is sent now is mined before `deadline`."""
        return self.now + self.margin_s < deadline

    def is_settled(self, block: int) -> bool:
        """Whether a block lies so deep that its hash is not expected to change any more."""
        return self._depth(block) >= self.confirmations

    def post_depth(self, task: int) -> int:
        """How many blocks deep the post of a task lies, up to what a join asks for."""
        asked = self.join_confirmations
        return min(self._depth(self.posted[task]), asked) if task in self.posted else asked

    def stays_open(self, task: int) -> bool:
        """Whether the opening of a task to challenges is not expected to be taken back."""
        return task not in self.opened or self.is_settled(self.opened[task])

    def _depth(self, block: int) -> int:
        return self.block - block + 1


def slots_of(task: Task, who: str) -> list[int]:
    """The slots that `who` holds."""
    return [
        index
        for index, slot in enumerate(task.slots)
        if slot.worker == who and task.joined >> index & 1
    ]


def taken(s: Situation) -> list[int]:
    """The tasks that we are in, or have asked to join: whether we are shows when that is mined."""
    joining = s.joining
    return [
        number
        for number, task in s.book.tasks.items()
        if task.state not in ENDED and (number in joining or slots_of(task, s.me))
    ]


def is_behind(task: Task, slot: int) -> bool:
    """Whether the slot stands behind the claim that is verified."""
    return task.slots[slot].claim is not None and (
        task.slots[slot].digest == task.slots[task.lead].digest
        or task.terms.policy is TaskPolicy.CONTEST
    )


def trains_jointly(task: Task) -> bool:
    """Whether the slots of a task train together; otherwise each does all of it alone."""
    is_alone = task.terms.policy in (TaskPolicy.REPLICATE, TaskPolicy.CONTEST)
    return task.terms.slots > 1 and not is_alone


def in_question(task: Task) -> list[Claim | None]:
    """What a panel of the task answers for: the lead claim, or in a contest what each slot has."""
    slots = task.slots if task.terms.policy is TaskPolicy.CONTEST else [task.slots[task.lead]]
    return [slot.claim for slot in slots]


def parties(task: Task) -> list[str]:
    """Who has money in a task, whoever's turn comes first in front."""
    # Who left or was evicted has nothing in it any more, and does nothing for it.
    present = [task.joined >> index & 1 for index in range(len(task.slots))]
    holders = [slot.worker for slot, here in zip(task.slots, present, strict=True) if here]
    lead = task.slots[task.lead].worker if present[task.lead] else None
    members = [seat.member for _, panel in sorted(task.panels.items()) for seat in panel.seats]
    accusers = [dispute.accuser for _, dispute in sorted(task.disputes.items())]
    everybody = (lead, *holders, *members, *accusers, task.requester)
    named = [one for one in everybody if one is not None]
    return list(dict.fromkeys(named))
