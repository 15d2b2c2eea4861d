"""A slot of a run in rounds: a worker of our own, and the others' parts over the peer plane.

The runner of the lowest slot that is held leads: the chain says who that is, so nobody disputes it.
It hears all workers and decides each round. The others take only its decisions, and merge, check
and keep every round by themselves: at the end all have the same run, and whoever comes to lead goes
on with it.
"""

import asyncio
import contextlib
import json
import time
from pathlib import Path
from typing import Any

import structlog

from trainyard.engine.events import Event
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Journal, held
from trainyard.engine.launching import EXCHANGE
from trainyard.engine.offers import sum_up_signers
from trainyard.engine.round_log import RoundLog
from trainyard.engine.worker import Job
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.peers.errors import PeerRefusedError
from worker_agent.peers.plane import PeerPlane
from worker_agent.progress import PEER
from worker_agent.runner.carrying import Carrier
from worker_agent.runner.following import Follower, Standing
from worker_agent.runner.leading import Leader
from worker_agent.runner.live import WAITING
from worker_agent.runner.meeting import open_plane
from worker_agent.runner.own_worker import KEY, OwnWorker
from worker_agent.runner.signers import KnownSigners
from worker_agent.runner.task import Task
from worker_agent.runner.waiting import first_of

_POLL_S = 0.25
# How long somebody is kept waiting for something new.
_HOLD_S = 8.0
WORKER, _DESK = "worker", "desk"


async def run_rounds(task: Task) -> None:
    await _RoundsRun(task).run()


class _RoundsRun:
    def __init__(self, task: Task) -> None:
        self._task, self._slot = task, task.job.slot
        self._folder = task.run / EXCHANGE
        self._exchange = Exchange(self._folder)
        self._exchange.prepare()
        self._signers = KnownSigners(task.shelf, task.workers)
        self._own = OwnWorker(task.sandbox, self._hear, task.module)
        self._log: RoundLog | None = None
        self._leads = False
        self._told = asyncio.Event()

    async def run(self) -> None:
        async with open_plane(self._task, self._answer) as plane:
            await first_of(self._hear_agent(plane), self._compute_and_serve(plane))

    async def _compute_and_serve(self, plane: PeerPlane) -> bool:
        if self._task.has_ended:
            self._log = self._open_log()
            # As it was when it ended, whoever has come since.
            sum_up_signers(self._task.run, self._task.manifest)
        else:
            await self._compute(plane)
        # The others may still need our states; the agent ends this when they do not.
        return await self._hear_others(plane)

    async def _hear_others(self, plane: PeerPlane) -> bool:
        """Note who says nothing any more: it may have been lost before it answered."""
        silent = self._task.live.silent
        while True:
            for slot in self._known_slots() - {self._slot}:
                try:
                    await plane.ask(slot, "standing", b"0", timeout_s=_HOLD_S)
                    silent.pop(slot, None)
                except PeerRefusedError:
                    silent.pop(slot, None)
                except TrainyardError:
                    silent.setdefault(slot, time.monotonic())
            await asyncio.sleep(_POLL_S)

    async def _compute(self, plane: PeerPlane) -> None:
        self._task.live.enter(WAITING)
        while not self._signers.is_complete:
            await self._told.wait()
            self._told.clear()
        with held(self._task.run):
            carrier = Carrier(
                plane, self._task.manifest, self._exchange, self._task.shelf.path(_DESK)
            )
            await self._take_over_signers(plane)
            while not await self._play(plane, carrier):
                pass
            sum_up_signers(self._task.run, self._task.manifest)
        self._task.end()

    async def _play(self, plane: PeerPlane, carrier: Carrier) -> bool:
        """Lead or follow until that changes, or who signs does; True at the run's end."""
        task, leader, signers = self._task, self._leader(), self._signers.all
        self._log = log = self._open_log()
        follower = Follower(task, log, self._exchange, self._own, carrier, plane)
        if leader == self._slot:
            role = self._lead(Leader(follower, self._known_slots))
        else:
            task.live.enter(f"training, led by worker {leader}")
            role = follower.follow(leader)
        if log.has_begun and not log.is_complete:
            self._exchange.post(log.call())
        try:
            return await first_of(role, self._keep_worker(), self._until_changed(leader, signers))
        finally:
            self._leads = False

    async def _keep_worker(self) -> bool:
        await self._own.keep(self._engine_job, self._task.shelf.path(PEER, KEY))
        # It made the model, and that is the end: whoever leads learns of it.
        return await asyncio.Event().wait()

    async def _lead(self, leader: Leader) -> bool:
        self._task.live.enter("catching up")
        await leader.catch_up()
        self._leads = True
        self._task.live.enter("training, leading")
        await leader.lead()
        return True

    async def _until_changed(self, leader: int, signers: object) -> bool:
        while (self._leader(), self._signers.all) == (leader, signers):
            await self._told.wait()
            self._told.clear()
        structlog.get_logger().info("roles change", leader=self._leader())
        return False

    def _open_log(self) -> RoundLog:
        task = self._task
        journal = Journal.open(task.run, task.manifest.canonical)
        return RoundLog(task.manifest, journal, self._exchange, self._signers.all)

    @property
    def _is_leading(self) -> bool:
        """Whether our run is the one that counts: it is led from here, or it is at its end."""
        return self._leads or self._task.has_ended

    def _leader(self) -> int:
        return min({self._slot, *self._task.job.holders})

    def _known_slots(self) -> set[int]:
        return {self._slot, *self._task.job.cards}

    def _engine_job(self) -> Job:
        return self._task.engine_job().model_copy(
            update={
                "folder": self._task.shelf.path(WORKER).absolute(),
                "exchange": self._folder.absolute(),
                "signers": self._signers.all,
                "slot": self._slot,
            }
        )

    def _hear(self, event: Event) -> None:
        self._task.live.take(event)

    async def _hear_agent(self, plane: PeerPlane) -> bool:
        """Know who holds the slots."""
        while True:
            before = self._task.job.holders
            if self._task.was_told_anew():
                cards, holders = self._task.job.peer_cards(), self._task.job.holders
                plane.know(cards)
                for slot in [one for one in before if holders.get(one) != before[one]]:
                    # Who comes instead was not silent yet.
                    self._task.live.silent.pop(slot, None)
                self._signers.learn({slot: card.signer for slot, card in cards.items()})
                self._told.set()
            self._task.live.write()
            await asyncio.sleep(_POLL_S)

    async def _take_over_signers(self, plane: PeerPlane) -> None:
        """Who comes new into a run did not see who signed before: those that were there say it.

        They could name anybody. That binds only whoever signed, and some segments are computed
        again here before anything is submitted.
        """
        if Journal.open(self._task.run, self._task.manifest.canonical).entries:
            return
        for slot in self._known_slots() - {self._slot}:
            with contextlib.suppress(TrainyardError):
                self._signers.take_over(await plane.ask(slot, "signers", timeout_s=_HOLD_S))

    async def _answer(self, slot: int, kind: str, body: bytes) -> bytes | Path:
        try:
            what: Any = json.loads(body) if body else None
            match kind:
                case "signers":
                    return self._signers.data
                case "events":
                    news = await self._own.news(str(what["name"]), int(what["since"]), _HOLD_S)
                    return news.model_dump_json().encode()
                case "state":
                    return self._state(str(what))
                case "offer":
                    return self._document(f"{int(what):06}-offer-{self._slot}.json")
                case "standing":
                    return self._standing(int(what)).model_dump_json().encode()
                case "decision":
                    return await self._decision(int(what["round"]), str(what["globe"]))
                case "anew":
                    if slot == self._leader():
                        self._own.restart()
                    return b""
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise PermanentError(f"{kind!r} cannot be asked for like this") from error
        raise PermanentError(f"nobody asks for {kind!r}")

    def _state(self, name: str) -> Path:
        path = self._exchange.path_of(name)
        # What the worker put there is not followed to files of ours.
        if path.is_symlink():
            raise PermanentError(f"there is no state {name[:64]!r} here")
        return path

    def _document(self, name: str) -> bytes:
        path = self._folder / "rounds" / name
        if path.is_symlink() or not path.is_file():
            raise PermanentError("that is not here")
        return path.read_bytes()

    def _standing(self, number: int) -> Standing:
        """How many rounds are decided here, and what the state before round `number` is."""
        log = self._log
        if log is None or not log.has_begun:
            return Standing(leads=self._is_leading, rounds=0, globe=None)
        rounds = log.round
        while rounds < log.plan.rounds and self._exchange.is_decided(rounds):
            rounds += 1
        return Standing(leads=self._is_leading, rounds=rounds, globe=log.globe_before(number))

    async def _decision(self, number: int, globe: str) -> bytes:
        """The decision on a round, once there is one. Who leads says if it has another run."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _HOLD_S
        while True:
            log = self._log
            known = None if log is None else log.globe_before(number)
            if self._is_leading and known not in (None, globe):
                raise PermanentError("the run that is led has another state there")
            if known == globe and self._exchange.is_decided(number):
                return self._document(f"{number:06}-decision.json")
            if loop.time() > until:
                return b""
            await asyncio.sleep(0.02)
