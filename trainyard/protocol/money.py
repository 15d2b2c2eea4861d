"""The market's money, kept a second time: what each act does to credits, locks and bonds.

Written from the rules of `docs/protocol.md` and not from the contract, so that each can be held
against the other. It knows amounts only: when an act is allowed and who was right, the caller says.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from trainyard.protocol.market import BPS, BURN_ADDRESS, Params, Policy, Terms


class MoneyError(ValueError):
    """The act is not paid for, so the market refuses it."""


class Part(Enum):
    """What a slot did, seen from the end of its task."""

    # Stands behind the claim that was verified; in a contest, won.
    SIGNED = auto()
    # Answered in time, and otherwise; in a contest, did not win.
    DISSENTED = auto()
    ABSENT = auto()
    # Was absent because another slot was lost and never replaced.
    EXCUSED = auto()


class Duty(Enum):
    """How a member served on its seat."""

    RIGHT = auto()
    SILENT = auto()
    WRONG = auto()
    # Nobody judged it: the seat ends without reward or loss.
    RELEASED = auto()


@dataclass(slots=True)
class Escrow:
    """What one task holds, and the terms that say who gets it."""

    requester: str
    terms: Terms
    params: Params
    locked: int = 0

    @property
    def penalty(self) -> int:
        """What a fault costs a slot."""
        return self.terms.stake * self.params.fault_bps // BPS

    @property
    def silence(self) -> int:
        """What having no answer costs a member."""
        return self.params.seat_bond * self.params.fault_bps // BPS

    def reward(self, share: int | None) -> int:
        """What a slot behind a good claim earns; `share` in hundredths of a percent, if agreed."""
        whole = self.terms.reward * self.terms.slots
        if self.terms.policy is Policy.CONTEST:
            return whole
        return self.terms.reward if share is None else whole * share // BPS


@dataclass(slots=True)
class Money:
    credits: Counter[str] = field(default_factory=Counter)
    # What members put down, and how much of it stands behind seats.
    bonds: Counter[str] = field(default_factory=Counter)
    pledged: Counter[str] = field(default_factory=Counter)
    tasks: dict[int, Escrow] = field(default_factory=dict)
    # Bonds of challengers, by task and segment.
    accusations: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def owed(self) -> int:
        """Everything that the market must hold."""
        locked = sum(task.locked for task in self.tasks.values())
        return self.credits.total() + self.bonds.total() + locked + sum(self.accusations.values())

    # The vault

    def deposit(self, who: str, amount: int) -> None:
        self.credits[who] += amount

    def withdraw(self, who: str, amount: int) -> None:
        self._debit(who, amount)

    def burn(self) -> int:
        """What is burned leaves the market for good."""
        return self.credits.pop(BURN_ADDRESS, 0)

    def bond(self, who: str, amount: int) -> None:
        self._debit(who, amount)
        self.bonds[who] += amount

    def unbond(self, who: str) -> None:
        if self.pledged[who]:
            raise MoneyError(f"{self.pledged[who]} of the bond of {who} stand behind seats")
        self.credits[who] += self.bonds.pop(who, 0)

    # Slots

    def post(self, task_id: int, requester: str, terms: Terms, params: Params) -> None:
        self._debit(requester, terms.escrow)
        self.tasks[task_id] = Escrow(requester, terms, params, terms.escrow)

    def join(self, task_id: int, worker: str) -> None:
        task = self.tasks[task_id]
        self._debit(worker, task.terms.stake)
        task.locked += task.terms.stake

    def leave(self, task_id: int, worker: str) -> None:
        self._pay(self.tasks[task_id], worker, self.tasks[task_id].terms.stake)

    def evict(self, task_id: int, worker: str) -> None:
        self._fault(self.tasks[task_id], worker)

    # Seats

    def pledge(self, task_id: int, member: str) -> None:
        """Put a bond of the member behind a seat that it was drawn for."""
        self.pledged[member] += self.tasks[task_id].params.seat_bond

    def challenge(self, task_id: int, segment: int, accuser: str) -> None:
        bond = self.tasks[task_id].params.seat_bond
        self._debit(accuser, bond)
        self.accusations[task_id, segment] = bond

    # The end of a task

    def cancel(self, task_id: int, workers: Iterable[str]) -> None:
        task = self.tasks[task_id]
        for worker in workers:
            self._pay(task, worker, task.terms.stake)
        self._refund(task)

    def settle(
        self,
        task_id: int,
        slots: Mapping[str, Part],
        seats: Mapping[str, Duty],
        shares: Mapping[str, int] | None = None,
    ) -> None:
        """Pay the claim of those who signed it."""
        task = self.tasks[task_id]
        for worker, part in slots.items():
            match part:
                case Part.SIGNED:
                    share = None if shares is None else shares[worker]
                    self._pay(task, worker, task.terms.stake + task.reward(share))
                case Part.DISSENTED if task.terms.policy is not Policy.CONTEST:
                    self._fault(task, worker)
                case Part.ABSENT:
                    self._fault(task, worker)
                case _:
                    self._pay(task, worker, task.terms.stake)
        task.locked -= self._close_seats(task, seats)
        self._refund(task)

    def fail(self, task_id: int, slots: Mapping[str, Part], seats: Mapping[str, Duty]) -> None:
        """End a task for which nobody is to blame but those who were absent."""
        task = self.tasks[task_id]
        for worker, part in slots.items():
            if part is Part.ABSENT:
                self._fault(task, worker)
            else:
                self._pay(task, worker, task.terms.stake)
        task.locked -= self._close_seats(task, seats)
        self._refund(task)

    def convict(
        self,
        task_id: int,
        slots: Mapping[str, Part],
        seats: Mapping[str, Duty],
        *,
        finder: str | None = None,
        referees: Mapping[str, Duty] | None = None,
    ) -> None:
        """End a task whose claim was wrong or withheld: those who signed it lose their stakes."""
        task = self.tasks[task_id]
        pot = task.terms.stake * sum(part is Part.SIGNED for part in slots.values())
        task.locked -= pot
        rest = pot - self._close_seats(task, referees or {})
        # One stake is shared out and the others burn: spoiling a joint claim must not pay.
        shared = min(rest, task.terms.stake)
        self._slash(task, shared, finder)
        self.credits[BURN_ADDRESS] += rest - shared
        self.fail(
            task_id,
            {worker: part for worker, part in slots.items() if part is not Part.SIGNED},
            seats,
        )

    # The end of a dispute

    def reject(
        self,
        task_id: int,
        segment: int,
        accuser: str,
        referees: Mapping[str, Duty],
        *,
        accused: str | None,
    ) -> None:
        """The accuser was wrong: its bond pays the referees, and the accused for the trouble.

        Without an `accused`, the accuser was not served though the referees were. It could say
        nothing else: it pays for a fault, and nobody gains.
        """
        task = self.tasks[task_id]
        lost = task.params.seat_bond
        fees = self._close_seats(task, referees)
        if accused is None:
            lost = min(lost, fees + task.silence)
            self.credits[BURN_ADDRESS] += lost - fees
        else:
            self._slash(task, lost - fees, accused)
        if (task_id, segment) in self.accusations:
            self.credits[accuser] += self.accusations.pop((task_id, segment)) - lost
        else:
            self._take_bond(task, accuser, lost)

    def release(
        self, task_id: int, segment: int, accuser: str, referees: Mapping[str, Duty]
    ) -> None:
        """A dispute ends, and nobody was right: the accuser gets back what it put down."""
        if self._close_seats(self.tasks[task_id], referees):
            raise MoneyError("nobody pays for an answer that decided nothing")
        self.return_accusation(task_id, segment, accuser)

    def return_accusation(self, task_id: int, segment: int, accuser: str) -> None:
        self.credits[accuser] += self.accusations.pop((task_id, segment), 0)

    # Movements

    def _debit(self, who: str, amount: int) -> None:
        if self.credits[who] < amount:
            raise MoneyError(f"{who} has a credit of {self.credits[who]} and needs {amount}")
        self.credits[who] -= amount

    def _pay(self, task: Escrow, who: str, amount: int) -> None:
        task.locked -= amount
        self.credits[who] += amount

    def _fault(self, task: Escrow, worker: str) -> None:
        # What rests on silence or on a vote alone is burned: nobody gains by it.
        self._pay(task, BURN_ADDRESS, task.penalty)
        self._pay(task, worker, task.terms.stake - task.penalty)

    def _refund(self, task: Escrow) -> None:
        self._pay(task, task.requester, task.locked)

    def _slash(self, task: Escrow, amount: int, finder: str | None) -> None:
        found = 0 if finder is None else amount * task.params.finder_bps // BPS
        harmed = amount * task.params.requester_bps // BPS
        if finder is not None:
            self.credits[finder] += found
        self.credits[task.requester] += harmed
        self.credits[BURN_ADDRESS] += amount - found - harmed

    def _close_seats(self, task: Escrow, seats: Mapping[str, Duty]) -> int:
        """End the seats; the fees of those who were right are the caller's to find."""
        fees = 0
        for member, duty in seats.items():
            match duty:
                case Duty.RIGHT:
                    self._take_bond(task, member, 0)
                    self.credits[member] += task.terms.audit_fee
                    fees += task.terms.audit_fee
                case Duty.SILENT:
                    self.credits[BURN_ADDRESS] += self._take_bond(task, member, task.silence)
                case Duty.WRONG:
                    whole = task.params.seat_bond
                    self.credits[BURN_ADDRESS] += self._take_bond(task, member, whole)
                case Duty.RELEASED:
                    self._take_bond(task, member, 0)
        return fees

    def _take_bond(self, task: Escrow, member: str, lost: int) -> int:
        """Free the bond behind one seat of a member, less what it lost."""
        self.pledged[member] -= task.params.seat_bond
        self.bonds[member] -= lost
        return lost
