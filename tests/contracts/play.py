"""Players who drive tasks through the market at random, each move allowed by the rules."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.contracts.shadow import Answer, Shadow
from tests.contracts.witness import RefusedError
from tests.contracts.yard import ENV_CLASS, ETHER, FEE, SEGMENTS, Yard, digest, trace_of
from trainyard.protocol import verdicts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Dispute, Task
from trainyard.protocol.market import (
    UNSERVED,
    DisputeState,
    Policy,
    SeatState,
    TaskState,
    Terms,
)

DAY = 86_400
TRACES = [trace_of("honest"), trace_of("other")]
ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
LIVE_DISPUTES = (
    DisputeState.UNSERVED,
    DisputeState.CALLED,
    DisputeState.HEARING,
    DisputeState.RULING,
)
WRONG = digest("wrong")
# All tasks share one clock: waiting for one must not end the others too often. Only the window for
# challenges, which nothing shortens, is brief.
PATIENCE = {
    "join_for": 30 * DAY,
    "train_for": 30 * DAY,
    "audit_for": 10 * DAY,
    "answer_for": 6 * DAY,
    "challenge_for": 600,
}


class Play:
    """One player of everybody's part; `dice` decides."""

    def __init__(self, shadow: Shadow, dice: Random) -> None:
        self.shadow, self.dice = shadow, dice
        self.yard: Yard = shadow.yard
        self.book = shadow.book

    def chance(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent

    def before(self, deadline: int) -> bool:
        """Whether the next transaction is in time."""
        return self.yard.now() + 1 < deadline

    # What there is to play

    def running_tasks(self) -> list[int]:
        return [task_id for task_id, task in self.book.tasks.items() if self.is_live(task)]

    def is_live(self, task: Task) -> bool:
        return task.state not in ENDED or bool(self.live_disputes(task))

    def live_disputes(self, task: Task) -> list[int]:
        return [
            segment for segment, dispute in task.disputes.items() if dispute.state in LIVE_DISPUTES
        ]

    # Posting

    def post(self, policy: Policy) -> int:
        requester = self.dice.choice([self.yard.requester, self.yard.workers[0]])
        return self.shadow.post(requester, self.terms(policy))

    def terms(self, policy: Policy) -> Terms:
        """Terms with odd amounts, so that every division leaves a rest."""
        slots = self.dice.randint(1, 3)
        least = slots // 2 + 1 if policy is Policy.REPLICATE else 1
        most = slots if policy in (Policy.REPLICATE, Policy.CONTEST) else (slots + 1) // 2
        terms = self.yard.terms(
            policy,
            slots=slots,
            quorum=self.dice.randint(least, most),
            reward=self.dice.randrange(ETHER),
            stake=self.dice.randrange(ETHER // 10, ETHER),
            **PATIENCE,
        )
        match policy:
            case Policy.AUDIT:
                audits = self.dice.randint(0, 3)
                return replace(
                    terms,
                    audits=audits,
                    min_audits=self.dice.randint(0, audits),
                    audit_fee=self.dice.randrange(FEE // 10, FEE),
                    shares_agreed=self.chance(40),
                )
            case Policy.SCORE | Policy.CONTEST:
                return replace(
                    terms,
                    audits=self.dice.choice([1, 3]),
                    audit_fee=self.dice.randrange(FEE // 10, FEE),
                    tolerance=10,
                    shares_agreed=policy is Policy.SCORE and self.chance(40),
                )
            case _:
                return terms

    # The next move of a task

    def move(self, task_id: int) -> None:
        moves: dict[TaskState, Callable[[int, Task], None]] = {
            TaskState.OPEN: self.fill,
            TaskState.RUNNING: self.train,
            TaskState.REVEALING: self.show,
            TaskState.SUBMITTED: self.draw,
            TaskState.AUDITING: self.audit,
            TaskState.OPENING: self.open,
            TaskState.WINDOW: self.close,
            TaskState.DISPUTED: self.judge,
        }
        task = self.book.tasks[task_id]
        moves.get(task.state, self.judge)(task_id, task)

    def fill(self, task_id: int, task: Task) -> None:
        if not self.before(task.deadline):
            self.shadow.expire(task_id)
        elif task.joined and self.chance(15):
            self.shadow.cancel(task_id)
        elif task.joined and self.chance(40):
            self.shadow.leave(task_id, next(iter(verdicts.holders(task))))
        else:
            self.join(task_id, task)

    def join(self, task_id: int, task: Task) -> None:
        """Let workers take the free slots, and auditors where there are no more workers."""
        taken = set(verdicts.holders(task).values()) | {task.requester}
        for who in [*self.yard.workers, *self.yard.auditors]:
            missing = task.terms.slots - len(verdicts.holders(task))
            if not missing or not self.before(task.deadline):
                return
            if who.address in taken or not self.is_registered(who):
                continue
            if self.shadow.money.credits[who.address] >= task.terms.stake:
                self.shadow.join(task_id, who, value=self.dice.choice([0, 1]))
                if self.chance(20):
                    return

    def is_registered(self, who: Any) -> bool:
        worker = self.book.workers.get(who.address)
        return worker is not None and worker.env_class == ENV_CLASS

    def train(self, task_id: int, task: Task) -> None:
        if task.answered and task.answered == task.joined:
            return self.shadow.expire(task_id)
        silent = [slot for slot in verdicts.holders(task) if not task.answered >> slot & 1]
        if silent and self.chance(20):
            self.ask(task_id, task, self.dice.choice(silent))
        for slot in silent:
            if task.state is TaskState.RUNNING and self.may_answer(task, slot) and self.chance(95):
                claim, shares = self.claim(task)
                self.shadow.answer(task_id, slot, claim, shares)
        if task.state is TaskState.RUNNING and self.chance(30):
            self.yard.warp(task.deadline)
            self.shadow.expire(task_id)
        return None

    def may_answer(self, task: Task, slot: int) -> bool:
        held = task.joined >> slot & 1 and not task.answered >> slot & 1
        return bool(held) and self.before(task.deadline)

    def ask(self, task_id: int, task: Task, slot: int) -> None:
        """Ask a slot for a sign of life; it answers, or is evicted and perhaps replaced."""
        asked = task.slots[slot]
        if asked.pong_by == 0:
            if not self.before(task.deadline) or self.yard.now() < asked.quiet_until:
                return None
            self.shadow.ping(task_id, slot)
        if self.before(asked.pong_by) and self.chance(60):
            return self.shadow.pong(task_id, slot)
        self.yard.warp(asked.pong_by)
        if not self.before(task.deadline):
            return None
        self.shadow.evict(task_id, slot)
        if not task.answered and self.chance(60):
            self.join(task_id, task)
        return None

    def claim(self, task: Task) -> tuple[Claim, list[int]]:
        trace = TRACES[not self.chance(85)]
        shares = [10_000 // task.terms.slots] * task.terms.slots if task.terms.shares_agreed else []
        return Claim.of(digest("result"), trace.root, shares), shares

    def show(self, task_id: int, task: Task) -> None:
        hidden = task.answered & ~task.revealed
        for slot in range(task.terms.slots):
            if hidden >> slot & 1 and self.before(task.deadline) and self.chance(93):
                self.shadow.reveal(task_id, slot)
        if task.state is TaskState.REVEALING:
            if task.revealed != task.answered:
                self.yard.warp(task.deadline)
            end = self.shadow.expire if self.chance(50) else self.shadow.settle
            (self.shadow.expire if task.terms.policy is Policy.CONTEST else end)(task_id)

    # Audits

    def draw(self, task_id: int, task: Task) -> None:
        self.try_draw(lambda: self.shadow.draw(task_id))
        if task.state is TaskState.SUBMITTED and self.chance(50):
            self.yard.warp(task.deadline)
            self.shadow.draw(task_id)

    def try_draw(self, draw: Callable[[], None]) -> None:
        """Draw a panel, which may have to wait for members that are free."""
        try:
            draw()
        except RefusedError as error:
            if str(error) != "MarketTooFewAuditors":
                raise

    def audit(self, task_id: int, task: Task) -> None:
        for index, seat in enumerate(task.own_panel.seats):
            drawn = seat.state is SeatState.DRAWN
            if drawn and self.before(task.deadline) and self.chance(95):
                self.shadow.commit_seat(task_id, index, self.answer(task, seat.segment))
        if task.state is TaskState.AUDITING and self.chance(40):
            self.yard.warp(task.deadline)
            late = task.terms.policy is Policy.AUDIT and self.chance(50)
            (self.shadow.open if late else self.shadow.expire)(task_id)

    def answer(self, task: Task, segment: int) -> Answer:
        if task.terms.policy is Policy.AUDIT:
            truth = self.shadow.trace(task).after(segment)
            return self.dice.choice([truth] * 8 + [WRONG, UNSERVED])
        columns = task.terms.slots if task.terms.policy is Policy.CONTEST else 1
        base = 905 if self.chance(80) else 880
        return tuple(base + self.dice.randrange(8) for _ in range(columns))

    def open(self, task_id: int, task: Task) -> None:
        if self.before(task.deadline) and self.chance(93):
            return self.shadow.open(task_id)
        self.yard.warp(task.deadline)
        return self.shadow.expire(task_id)

    def close(self, task_id: int, task: Task) -> None:
        self.reveal_answers(task_id, task)
        if task.terms.policy is Policy.AUDIT and self.chance(60):
            self.accuse(task_id, task)
        if task.state is TaskState.WINDOW:
            panel = task.own_panel
            audit = task.terms.policy is Policy.AUDIT
            hidden = panel.revealed != panel.committed
            self.yard.warp(max(audit * task.deadline, hidden * panel.reveal_by))
            self.shadow.settle(task_id)

    def reveal_answers(self, task_id: int, task: Task) -> None:
        for index, seat in enumerate(task.own_panel.seats):
            hidden = seat.state is SeatState.COMMITTED
            if hidden and self.before(task.own_panel.reveal_by) and self.chance(95):
                self.shadow.reveal_seat(task_id, index)

    # Disputes

    def accuse(self, task_id: int, task: Task) -> None:
        """Challenge a segment that nobody did; also one that has its auditor."""
        free = [segment for segment in range(SEGMENTS) if segment not in task.disputes]
        accuser = self.dice.choice([self.yard.challenger, *self.yard.auditors[:3]])
        bond = self.book.params[task.params_id].seat_bond
        poor = self.shadow.money.credits[accuser.address] < bond
        if poor or not free or not self.before(task.deadline):
            return
        served = self.chance(70)
        accuse = self.shadow.challenge if served else self.shadow.challenge_unserved
        accuse(task_id, self.dice.choice(free), accuser)

    def judge(self, task_id: int, task: Task) -> None:
        """Move one dispute on, and let auditors reveal meanwhile."""
        if task.state is TaskState.DISPUTED:
            self.reveal_answers(task_id, task)
        segment = self.dice.choice(self.live_disputes(task))
        dispute = task.disputes[segment]
        if task.state is not TaskState.DISPUTED:
            return self.shadow.resolve(task_id, segment)
        match dispute.state:
            case DisputeState.UNSERVED:
                if self.before(dispute.deadline) and self.chance(60):
                    return self.shadow.serve(task_id, segment)
                self.yard.warp(dispute.deadline)
                return self.shadow.resolve(task_id, segment)
            case DisputeState.CALLED:
                return self.call(task_id, segment, dispute)
            case DisputeState.HEARING:
                return self.hear(task_id, task, segment)
            case _:
                return self.rule(task_id, task, segment)

    def call(self, task_id: int, segment: int, dispute: Dispute) -> None:
        self.try_draw(lambda: self.shadow.draw_referees(task_id, segment))
        if dispute.state is DisputeState.CALLED and self.chance(50):
            self.yard.warp(dispute.deadline)
            self.shadow.draw_referees(task_id, segment)

    def hear(self, task_id: int, task: Task, segment: int) -> None:
        dispute = task.disputes[segment]
        # Referees lean towards one answer, so that most committees decide.
        leaning = self.dice.choice([dispute.claimed, dispute.claimed, WRONG, UNSERVED])
        for index, seat in enumerate(task.panels[segment, dispute.round].seats):
            drawn = seat.state is SeatState.DRAWN
            if drawn and self.before(dispute.deadline) and self.chance(93):
                answer = leaning if self.chance(75) else digest(f"answer {index}")
                self.shadow.commit_referee(task_id, segment, index, answer)
        if dispute.state is DisputeState.HEARING:
            self.yard.warp(dispute.deadline)
            self.shadow.resolve(task_id, segment)

    def rule(self, task_id: int, task: Task, segment: int) -> None:
        dispute = task.disputes[segment]
        panel = task.panels[segment, dispute.round]
        for index, seat in enumerate(panel.seats):
            hidden = seat.state is SeatState.COMMITTED
            if hidden and self.before(dispute.deadline) and self.chance(95):
                self.shadow.reveal_referee(task_id, segment, index)
        if panel.revealed != panel.committed:
            self.yard.warp(dispute.deadline)
        self.shadow.resolve(task_id, segment)
