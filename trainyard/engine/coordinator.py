"""Leads a run in rounds: calls each round, decides who is in, and keeps the trace.

It computes no part and is believed by nobody: each worker merges by itself, and all have to agree.
A worker that is lost is started anew and comes in again once it is there; the others go on.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trainyard.engine.coordinating import Deadline, Standing, decide
from trainyard.engine.crew import Crew, Lost, Members
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.events import (
    Ended,
    Event,
    Failed,
    Finished,
    LeftOut,
    Merged,
    Offered,
    Restarted,
    Started,
    Stepped,
    tell,
)
from trainyard.engine.exchange import End, Exchange
from trainyard.engine.journal import Journal, held
from trainyard.engine.leaves import Absence
from trainyard.engine.merging import quorum_of
from trainyard.engine.round_log import RoundLog
from trainyard.engine.silence import Silence
from trainyard.engine.supervisor import DEFAULT_STALL_S, MOST_LOSSES
from trainyard.engine.tested import keep_tested, read_tested
from trainyard.engine.worker import MODEL, Job
from trainyard.protocol.manifest import Manifest

_REASONS = {Absence.AWAY: "it was not there", Absence.LATE: "it was not done by the deadline"}


def coordinate(
    jobs: tuple[Job, ...], run: Path, deadline_s: float | None, stall_s: float | None = None
) -> None:
    """Run all rounds to the end, or go on with those that `run` holds."""
    data = jobs[0].manifest.read_bytes()
    if jobs[0].exchange is None:
        raise RunError("the workers of rounds have no folder to meet in")
    with held(run):
        journal = Journal.open(run, data)
        exchange = Exchange(jobs[0].exchange)
        log = RoundLog(Manifest.parse(data), journal, exchange, jobs[0].signers)
        tested = read_tested(run)
        is_tested = tested is not None or jobs[0].test is None
        if log.is_complete and is_tested and (run / MODEL).exists():
            tell(Ended(root=log.root, tested=tested))
            return
        with Crew(jobs) as crew:
            deadline, silence = Deadline(deadline_s), Silence(stall_s, DEFAULT_STALL_S)
            ended = Coordinator(log, exchange, crew, deadline, silence=silence).lead()
        if ended.tested is not None:
            keep_tested(run, ended.tested)
        (jobs[ended.slot].folder / MODEL).replace(run / MODEL)
        tell(ended)


class Coordinator:
    """Leads the workers of `crew`, and tells `tell` how it goes.

    One that is lost `most_losses` times without a part between is not started again. The model is
    made by the worker `finisher`, or by any that is there. The run begins with the state of the
    worker `starter`, where the others are strangers, or of the first that is there.
    """

    def __init__(
        self,
        log: RoundLog,
        exchange: Exchange,
        crew: Members,
        deadline: Deadline,
        *,
        silence: Silence | None = None,
        tell: Callable[[Event], None] = tell,
        most_losses: int | None = MOST_LOSSES,
        finisher: int | None = None,
        starter: int | None = None,
    ) -> None:
        self._log, self._exchange, self._crew = log, exchange, crew
        self._tell, self._most_losses, self._finisher = tell, most_losses, finisher
        self._starter = starter
        # What others begin with, as long as that of `starter` is not known.
        self._starts: dict[int, str] = {}
        self._workers = log.plan.workers
        self._quorum = quorum_of(log.manifest)
        self._deadline = deadline
        self._silence = silence or Silence(None, 0.0)
        self._opened_at = time.monotonic()
        # What the slowest part of a round so far took, with all that came before it was here.
        self._longest_s: float | None = None
        # Who is there: who has been started and was neither lost nor late since it last spoke.
        self._there: set[int] = set()
        self._offered: set[int] = set()
        # Of the round after this one, by slot: a worker that took our decision over may be done
        # with its next part before we have heard that anybody has merged this round.
        self._early: dict[int, int] = {}
        self._first_offer_at = 0.0
        self._reports: dict[int, Merged] = {}
        self._losses = [0] * self._workers
        self._lost_at: dict[int, tuple[float, str]] = {}
        # Why workers could not go on, since somebody last did a part.
        self._failed: dict[int, str] = {}
        self._end: End | None = None

    def lead(self) -> Ended:
        """Hear the workers, and after each word do all that can be done."""
        for slot in range(self._workers):
            self._start(slot)
            self._there.add(slot)
        if self._log.has_begun:
            self._open_round()
        while True:
            for heard in self._crew.listen(self._listen_s()):
                if isinstance(heard, Ended) and self._is_end(heard):
                    return heard
                if isinstance(heard, Lost):
                    self._replace(heard)
                else:
                    is_step = isinstance(heard, Stepped | Offered)
                    self._silence.hear(heard.slot, time.monotonic(), is_step=is_step)
                    self._hear(heard)
            for slot, silent_s in self._silence.over(self._awaited, time.monotonic()).items():
                self._crew.dismiss(slot)
                self._replace(Lost(slot, f"worker {slot} said nothing for {silent_s:.0f} s"))
            while self._advance():
                pass

    def _hear(self, event: Event) -> None:
        match event:
            case Failed():
                self._fail(event.slot, event.reason)
            case Started():
                self._tell(event)
                self._welcome(event)
            case Offered():
                self._hear_offer(event)
            case Merged():
                self._take_report(event)
            case Ended():
                self._refuse(event.slot, f"worker {event.slot} says that the run has ended")
            case _:
                self._tell(event)

    def _welcome(self, event: Started) -> None:
        try:
            self._agree_on_start(event)
        except StateError as error:
            self._refuse(event.slot, str(error))
            return
        self._there.add(event.slot)
        if event.slot in self._lost_at:
            since, reason = self._lost_at.pop(event.slot)
            kept = self._log.plan.before(self._log.round) + 1 if self._log.has_begun else 0
            lost_s = time.monotonic() - since
            self._tell(Restarted(slot=event.slot, reason=reason, kept=kept, lost_s=lost_s))

    def _agree_on_start(self, event: Started) -> None:
        if event.start is None:
            return
        if self._log.has_begun:
            self._check_start(event.slot, event.start)
        elif self._starter in (None, event.slot):
            self._tell(Finished(entry=self._log.begin(event.start)))
            self._open_round()
            self._check_starts()
        else:
            self._starts[event.slot] = event.start

    def _check_starts(self) -> None:
        """Look at what others said before it was known what is right."""
        for slot, start in self._starts.items():
            try:
                self._check_start(slot, start)
            except StateError as error:
                self._refuse(slot, str(error))
        self._starts.clear()

    def _check_start(self, slot: int, start: str) -> None:
        if start != self._log.start:
            raise StateError(
                f"worker {slot} disagrees about the state before the first round: its machine is "
                "faulty or of another class"
            )

    def _hear_offer(self, event: Offered) -> None:
        if self._log.is_complete:
            return
        if event.round == self._log.round:
            self._take_offer(event.slot)
        elif event.round == self._log.round + 1:
            self._early[event.slot] = event.round

    def _take_offer(self, slot: int) -> None:
        try:
            self._log.take(slot)
        except StateError as error:
            self._refuse(slot, str(error))
            return
        self._note_offer(slot)

    def _take_early_offers(self) -> None:
        early, self._early = self._early, {}
        for slot, number in early.items():
            # One that began with another state than ours is offered again.
            with suppress(StateError):
                if number == self._log.round:
                    self._log.take(slot)
                    self._note_offer(slot)

    def _note_offer(self, slot: int) -> None:
        now = time.monotonic()
        if not self._offered:
            self._first_offer_at = now
        self._longest_s = max(self._longest_s or 0.0, now - self._opened_at)
        self._there.add(slot)
        self._offered.add(slot)
        self._losses[slot] = 0
        self._failed.clear()

    def _take_report(self, report: Merged) -> None:
        """INVARIANT: a merge is known before anybody tells of it, so who tells another is wrong."""
        known = self._log.state_after(report.round) or "none"
        if known != report.state:
            self._refuse(
                report.slot,
                f"worker {report.slot} disagrees about the merge of round {report.round}: it has "
                f"{report.state[:16]}…, and the others {known[:16]}…. Its machine is faulty",
            )
            return
        self._there.add(report.slot)
        self._reports.setdefault(report.round, report)

    def _advance(self) -> bool:
        """Take the next step towards the end, if it can be taken."""
        log = self._log
        if not log.has_begun:
            return False
        if log.is_complete:
            self._choose_finisher()
            return False
        if log.merged is None:
            overdue = self._patience_s() == 0
            standing = Standing(
                self._workers, self._offered, self._there, self._quorum, overdue=overdue
            )
            absences = decide(standing)
            if absences is None:
                return False
            self._settle(absences)
        report = self._reports.get(log.round)
        if report is None:
            return False
        self._tell(Finished(entry=log.finish(report.validated)))
        self._reports.clear()
        if not log.is_complete:
            self._open_round()
        return True

    def _open_round(self) -> None:
        if self._log.is_complete:
            return
        self._offered.clear()
        self._opened_at = time.monotonic()
        self._exchange.post(self._log.call())
        decided = self._log.decided()
        if decided is not None:
            self._settle(decided)
        else:
            self._take_early_offers()

    def _settle(self, absences: dict[int, Absence]) -> None:
        number = self._log.round
        for slot, entry in enumerate(self._log.settle(absences)):
            self._tell(Finished(slot=slot, entry=entry))
        for slot, why in absences.items():
            # Who was late is waited for again once it has shown itself.
            self._there.discard(slot)
            reason = _REASONS[why]
            if why is Absence.AWAY and slot in self._lost_at:
                _, reason = self._lost_at[slot]
            self._tell(LeftOut(slot=slot, round=number, reason=reason))

    def _is_end(self, ended: Ended) -> bool:
        return self._end is not None and (ended.slot, ended.root) == (
            self._end.slot,
            self._end.root,
        )

    def _choose_finisher(self) -> None:
        """One of those that are there makes the model; if it is lost, another does."""
        able = self._there if self._finisher is None else self._there & {self._finisher}
        if able and (self._end is None or self._end.slot not in self._there):
            slot = min(able)
            globe, root = self._log.globe, self._log.root
            self._end = End(round=self._log.plan.rounds, slot=slot, globe=globe, root=root)
            self._exchange.post(self._end)

    def _refuse(self, slot: int, reason: str) -> None:
        """Go on without a worker that says or offers what cannot be used."""
        if self._log.has_begun:
            self._exchange.withdraw(self._log.round, slot)
        self._fail(slot, reason)

    def _fail(self, slot: int, reason: str) -> None:
        """Start a worker anew that cannot do its part. If none can, it is not for them to mend."""
        self._failed[slot] = reason
        if len(self._failed) == self._workers:
            raise RunError(reason)
        self._crew.dismiss(slot)
        self._replace(Lost(slot, reason))

    def _replace(self, lost: Lost) -> None:
        if lost.slot in self._crew.slots:
            # It failed, and is started anew already.
            return
        self._there.discard(lost.slot)
        self._early.pop(lost.slot, None)
        self._losses[lost.slot] += 1
        self._lost_at[lost.slot] = time.monotonic(), lost.reason
        if self._most_losses is None or self._losses[lost.slot] < self._most_losses:
            self._start(lost.slot)
        elif len(self._crew.slots) < self._quorum:
            raise RunError(
                f"{len(self._crew.slots)} workers are left, and a round needs {self._quorum}; the "
                f"others were lost {self._most_losses} times without a part between: {lost.reason}"
            )

    def _start(self, slot: int) -> None:
        self._crew.start(slot)
        self._silence.start(slot, time.monotonic())

    @property
    def _awaited(self) -> set[int]:
        """Whose turn it is: to show a first state, to do a part, to merge, or to end the run."""
        log = self._log
        if log.is_complete:
            return set() if self._end is None else {self._end.slot} & self._crew.slots
        is_at_parts = log.has_begun and log.merged is None
        return self._crew.slots - (self._offered if is_at_parts else set())

    def _listen_s(self) -> float | None:
        """Until a deadline, or until somebody has been silent for too long."""
        silent_s = self._silence.left_s(self._awaited, time.monotonic())
        limits = [one for one in (self._patience_s(), silent_s) if one is not None]
        return min(limits, default=None)

    def _patience_s(self) -> float | None:
        """How long the others are still waited for; None for however long it takes."""
        is_enough = len(self._offered) >= self._quorum
        is_open = is_enough and self._log.merged is None and not self._log.is_complete
        deadline_s = self._deadline.after(self._longest_s)
        if deadline_s is None or not is_open:
            return None
        return max(0.0, self._first_offer_at + deadline_s - time.monotonic())
