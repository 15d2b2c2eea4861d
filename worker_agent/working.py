"""Does on this machine what was decided: each piece in a process of its own, one at a time."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import singledispatchmethod
from typing import Any

import structlog
from eth_account.signers.local import LocalAccount

from trainyard.chain.outbox import Fault
from trainyard.content.content import Content
from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.ledger.book import Book, Task
from trainyard.protocol.market import OWN_PANEL, Policy
from trainyard.protocol.profiles import profiles_of
from worker_agent.actions import (
    Action,
    Fetch,
    Forget,
    LookBehind,
    MakeCard,
    Prepare,
    Recompute,
    Seal,
    Stop,
    Tell,
    Train,
)
from worker_agent.children import Children
from worker_agent.deciding.readiness import STANDBY
from worker_agent.endings import is_permanent, reason_of
from worker_agent.faults import Moment
from worker_agent.jobs import (
    AnswerJob,
    CardsJob,
    FetchJob,
    ForgetJob,
    LookJob,
    SealJob,
    StandbyJob,
)
from worker_agent.jobs import Job as WorkJob
from worker_agent.joining import choose_port, has_card, make_card, read_card
from worker_agent.lasting import answer_s, stage_s, standby_s
from worker_agent.past import folders
from worker_agent.progress import CARD, JOBS, RUN, Failure, Shelf, answer_work, asked
from worker_agent.runner.job import RunnerJob
from worker_agent.runner.task import ENDED
from worker_agent.settings import Home, Settings
from worker_agent.shelving import Shelving
from worker_agent.sight import Sight
from worker_agent.situation import ENDED as OVER
from worker_agent.situation import in_question, slots_of, trains_jointly

FORGET, _FORGET_AGAIN_S = "forget", 600.0
# What puts something into the folder of a task.
_FILED = (Fetch, MakeCard, Train, Seal, Recompute, LookBehind, Prepare)


class Worksite:
    """The processes for tasks. Whatever is decided twice is begun once."""

    # What those processes run.
    work_module, runner_module = "worker_agent.work", "worker_agent.runner"
    # Whether seals and answers may be begun before it is known what they are about.
    stands_by = True

    def __init__(
        self,
        home: Home,
        settings: Settings,
        account: LocalAccount,
        market: Market,
        content: Content,
        children: Children,
        reach: Callable[[Moment | Fault], None],
    ) -> None:
        self._home, self._settings, self._account = home, settings, account
        self._market, self._content, self._children = market, content, children
        self._reach = reach
        self.shelving = Shelving(home, children)
        # How often work failed since the start, by its kind.
        self.failures: Counter[str] = Counter()
        # By digest: what a card says never changes.
        self._read_cards: dict[bytes, str] = {}
        self._told: set[Tell] = set()
        self._forgets_at = 0.0

    def collect(self) -> None:
        """Note what has ended, and how."""
        for done in self._children.ended():
            self._reach(Moment.AFTER_WORK)
            shelf = self._shelf(done.task)
            log = structlog.get_logger().bind(task_id=done.task, work=done.work)
            reason = "" if done.status == 0 else reason_of(done, self._home.folder)
            is_final = is_permanent(done, self._home.folder)
            if reason:
                self.failures[done.work.partition("-")[0]] += 1
                log.warning("failed", reason=reason)
            else:
                log.info("done")
            if done.work == FORGET:
                # To note it would bring back a folder that is gone.
                self._forgets_at = time.monotonic() + (_FORGET_AGAIN_S if reason else 0.0)
                continue
            try:
                shelf.note(done.work, reason, is_permanent=is_final)
            except OSError as error:
                # It is tried again sooner than it should be.
                log.warning("not noted", reason=str(error))

    def perform(self, action: Action, sight: Sight) -> None:
        if isinstance(action, _FILED):
            self.shelving.claim(action.task, sight.book.tasks[action.task])
        self._do(action, sight)

    @singledispatchmethod
    def _do(self, action: Any, sight: Sight) -> None:
        raise TypeError(f"{action} is nothing that is done here")

    @_do.register
    def _(self, action: Fetch, sight: Sight) -> None:
        terms = sight.book.tasks[action.task].terms
        job = FetchJob(
            home=self._home.folder,
            task=action.task,
            manifest=terms.manifest.hex(),
            env_class=terms.env_class.hex(),
            slots=terms.slots,
            segments=terms.segments,
            is_audited=terms.policy is Policy.AUDIT,
            is_scored=terms.policy in (Policy.SCORE, Policy.CONTEST),
        )
        self._begin("fetch", job)

    @_do.register
    def _(self, action: MakeCard, sight: Sight) -> None:
        self._reach(Moment.BEFORE_CARD)
        make_card(
            self._shelf(action.task),
            self._market,
            action.task,
            self._account,
            self._settings.peers,
            self._content,
            self._port(action.task, sight),
        )
        self._reach(Moment.AFTER_CARD)

    @_do.register
    def _(self, action: Train, sight: Sight) -> None:
        task, shelf = sight.book.tasks[action.task], self._shelf(action.task)
        progress = shelf.progress()
        has_ended = (shelf.path(RUN) / ENDED).exists()
        if has_ended and progress.claim is None and _is_due(progress.failures.get("seal")):
            self._begin("seal", self._first_seal(action, task, sight.now))
        # Who computed alone has nothing for the others.
        is_alone = progress.fetched is not None and progress.fetched.workers == 1
        if (has_ended and is_alone) or not _is_due(progress.failures.get("train")):
            return
        # Who trains alone is the first and only worker of its run, whichever slot it has.
        slot, holders, cards = 0, {0: str(self._account.address)}, dict[int, str]()
        if trains_jointly(task):
            slot, holders = action.slot, _holders(task)
            cards = self._cards(action.task, sight.book)
        job = RunnerJob(
            home=self._home.folder,
            task=action.task,
            manifest=task.terms.manifest.hex(),
            slot=slot,
            me=self._account.address,
            chain_id=self._market.chain_id,
            market=self._market.address,
            holders=holders,
            cards=cards,
            wall_s=stage_s(task, sight.now),
        )
        path = shelf.path(JOBS, "train.json")
        is_running = self._children.has(action.task, "train")
        # Written when something changed: that is what the runner looks for.
        if not is_running or not path.exists() or not RunnerJob.read(path).says_the_same_as(job):
            self._write("train", job)
        if not is_running:
            self._start("train", self.runner_module, action.task, str(path))

    @_do.register
    def _(self, action: Seal, sight: Sight) -> None:
        job = SealJob(
            home=self._home.folder,
            task=action.task,
            manifest=sight.book.tasks[action.task].terms.manifest.hex(),
            served=action.served,
            is_open=action.is_open,
            wall_s=stage_s(sight.book.tasks[action.task], sight.now),
        )
        self._begin("seal", job)

    @_do.register
    def _(self, action: Recompute, sight: Sight) -> None:
        task = sight.book.tasks[action.task]
        seat = task.panels[action.panel].seats[action.seat]
        claims = in_question(task)
        claim = next((one for one in claims if one is not None), None)
        if claim is None:
            return
        job = AnswerJob(
            home=self._home.folder,
            task=action.task,
            manifest=task.terms.manifest.hex(),
            result=claim.result.hex(),
            root=claim.root.hex(),
            segment=seat.segment,
            is_scored=action.panel[0] == OWN_PANEL and task.terms.policy is not Policy.AUDIT,
            panel=action.panel,
            seat=action.seat,
            about=asked(claims, seat.segment),
            wall_s=answer_s(task, action.panel, sight.now),
            entries=tuple(
                None if one is None else (one.result.hex(), one.root.hex()) for one in claims
            ),
            profiles=_profiles(sight.book, action.task),
        )
        self._begin(answer_work(action.panel, action.seat), job)

    @_do.register
    def _(self, action: LookBehind, sight: Sight) -> None:
        task = sight.book.tasks[action.task]
        claim = task.slots[task.lead].claim
        if claim is None:
            return
        job = LookJob(
            home=self._home.folder,
            task=action.task,
            manifest=task.terms.manifest.hex(),
            result=claim.result.hex(),
            root=claim.root.hex(),
            segment=action.segment,
            profiles=_profiles(sight.book, action.task),
            wall_s=stage_s(task, sight.now),
        )
        self._begin("look", job)

    @_do.register
    def _(self, action: Prepare, sight: Sight) -> None:
        works = self._children.of(action.task)
        if not self.stands_by or any(one.startswith((STANDBY, "seal", "answer")) for one in works):
            return
        task = sight.book.tasks[action.task]
        job = StandbyJob(
            home=self._home.folder,
            task=action.task,
            manifest=task.terms.manifest.hex(),
            inputs=action.inputs,
            wall_s=standby_s(task, sight.now),
        )
        path = self._write(STANDBY, job)
        self._start(STANDBY, self.work_module, action.task, path, is_told=True)

    def release(self, wanted: Collection[int]) -> None:
        """End what stands by for tasks that do not need it any more."""
        for task in self._children.doing(STANDBY):
            if task not in wanted:
                self._children.dismiss(task, STANDBY)

    @_do.register
    def _(self, action: Stop, sight: Sight) -> None:
        for work in self._children.of(action.task):
            if work in action.spared or (action.works and work not in action.works):
                continue
            structlog.get_logger().info(
                "stopped", task_id=action.task, work=work, reason=action.reason
            )
            self._children.stop(action.task, work)

    @_do.register
    def _(self, action: Tell, sight: Sight) -> None:
        if action not in self._told:
            self._told.add(action)
            structlog.get_logger().warning("lost", task_id=action.task, reason=action.reason)

    @_do.register
    def _(self, action: Forget, sight: Sight) -> None:
        """One such process at a time, and none for tasks of which something still runs."""
        tasks = [one for one in action.tasks if not self._children.of(one)]
        if not tasks or self._children.doing(FORGET) or time.monotonic() < self._forgets_at:
            return
        cards = {one: self._cards_of(sight.book.tasks[one]) for one in tasks}
        self._told = {one for one in self._told if one.task not in cards}
        for digest in {one for some in cards.values() for one in some}:
            self._read_cards.pop(bytes.fromhex(digest), None)
        job = ForgetJob(home=self._home.folder, task=tasks[0], cards=cards)
        # Not in the folder of a task, for that goes.
        place = Shelf(self._home.folder / FORGET)
        place.write(job.model_dump(mode="json"), "job.json")
        path, log = str(place.path("job.json")), place.path("log")
        self._children.start(tasks[0], FORGET, self.work_module, [path], log)

    def _port(self, number: int, sight: Sight) -> int:
        held, promised = set[int](), set[int]()
        for other in folders(self._home.tasks) - {number}:
            task, card = sight.book.tasks.get(other), self._shelf(other).read(CARD)
            if task is None or card is None or task.state in OVER:
                continue
            is_in = bool(slots_of(task, self._account.address))
            (held if is_in else promised).add(int(card["port"]))
        wanted = self._settings
        return choose_port(wanted.peers, max(1, wanted.policy.concurrency), held, promised)

    def _cards_of(self, task: Task) -> tuple[str, ...]:
        return tuple(slot.peer_card.hex() for slot in task.slots if any(slot.peer_card))

    def _cards(self, number: int, book: Book) -> dict[int, str]:
        """The cards of the present holders, as far as they can be had.

        Those that are not here are fetched by a process: a slow source must not hold up the agent.
        """
        task, missing = book.tasks[number], list[str]()
        for slot, holder in enumerate(task.slots):
            digest = holder.peer_card
            if holder.worker is None or digest in self._read_cards:
                continue
            try:
                if not has_card(self._content, digest):
                    missing.append(digest.hex())
                    continue
                card = read_card(self._content, digest, self._market, number, holder.worker)
            except TrainyardError as error:
                structlog.get_logger().warning(
                    "no card", task_id=number, slot=slot, reason=str(error)
                )
                continue
            self._read_cards[digest] = card.data.decode()
        if missing and _is_due(self._shelf(number).progress().failures.get("cards")):
            job = CardsJob(
                home=self._home.folder,
                task=number,
                cards=tuple(missing),
                profiles=_profiles(book, number),
            )
            self._begin("cards", job)
        return {
            slot: self._read_cards[holder.peer_card]
            for slot, holder in enumerate(task.slots)
            if task.joined >> slot & 1 and holder.peer_card in self._read_cards
        }

    def _first_seal(self, action: Train, task: Task, now: int) -> SealJob:
        terms = task.terms
        # What was computed alone needs no second look.
        is_joint = terms.slots > 1 and terms.policy in (Policy.AUDIT, Policy.SCORE)
        audits = self._settings.policy.self_audits if is_joint else 0
        return SealJob(
            home=self._home.folder,
            task=action.task,
            manifest=terms.manifest.hex(),
            self_audits=audits,
            slot=action.slot,
            wall_s=stage_s(task, now),
        )

    def _begin(self, work: str, job: WorkJob) -> None:
        if self._children.has(job.task, work):
            return
        path = self._write(work, job)
        if isinstance(job, SealJob | AnswerJob) and self._children.has(job.task, STANDBY):
            self._reach(Moment.BEFORE_WORK)
            if self._children.hand_over(job.task, STANDBY, work, path):
                return
        self._start(work, self.work_module, job.task, path)

    def _write(self, work: str, job: WorkJob | RunnerJob) -> str:
        shelf = self._shelf(job.task)
        shelf.write(job.model_dump(mode="json"), JOBS, f"{work}.json")
        return str(shelf.path(JOBS, f"{work}.json"))

    def _start(
        self, work: str, module: str, task: int, path: str, *, is_told: bool = False
    ) -> None:
        self._reach(Moment.BEFORE_WORK)
        log = self._shelf(task).path(JOBS, f"{work}.log")
        self._children.start(task, work, module, [path], log, is_told=is_told)

    def _shelf(self, task: int) -> Shelf:
        return Shelf(self._home.task(task))


def _holders(task: Task) -> dict[int, str]:
    return {
        slot: holder.worker
        for slot, holder in enumerate(task.slots)
        if holder.worker is not None and task.joined >> slot & 1
    }


def _profiles(book: Book, number: int) -> tuple[str, ...]:
    return tuple(digest.hex() for digest in profiles_of(book, number))


def _is_due(failure: Failure | None) -> bool:
    return failure is None or failure.is_due(time.time())
