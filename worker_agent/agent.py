"""The agent: looks at the chain, decides, and acts, over and over."""

import hmac
import json
import os
import signal
import time
from collections.abc import Callable
from hashlib import sha256
from types import FrameType

import structlog
from eth_account.signers.local import LocalAccount

from trainyard.chain.cursor import Cursor
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import NoEndpointError
from trainyard.chain.outbox import Fault, Outbox
from trainyard.chain.store import Store
from trainyard.engine.classes import find_class
from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import TrainyardError, TransientError
from worker_agent.actions import Action, Send
from worker_agent.children import Children
from worker_agent.deciding import decide
from worker_agent.faults import Dying, Moment
from worker_agent.joining import publish_profile
from worker_agent.opening import open_agent_content
from worker_agent.progress import Shelf
from worker_agent.sending import FEE_RESERVE_WEI, Sender
from worker_agent.settings import Home, Settings
from worker_agent.sight import Sight, Watcher
from worker_agent.situation import ENDED, Situation, slots_of
from worker_agent.working import Worksite

_LONGEST_WAIT_S = 60.0


class Agent:
    """One account's agent. `run` returns when it was asked to end."""

    worksite = Worksite

    def __init__(
        self,
        home: Home,
        settings: Settings,
        account: LocalAccount,
        *,
        reach: Callable[[Moment | Fault], None] | None = None,
    ) -> None:
        chain = settings.chain
        self.home, self.settings, self.account = home, settings, account
        self._reach = reach or Dying.by_environment()
        self._endpoints = Endpoints(chain.endpoints, chain_id=chain.chain_id)
        self._endpoints.check()
        self._store = Store(home.chain_store, chain_id=chain.chain_id, market=chain.market)
        cursor = Cursor(self._endpoints, self._store, chain.market, start=chain.start_block)
        self._watcher = Watcher(self._endpoints, cursor, account.address)
        self.outbox = Outbox(
            self._endpoints,
            self._store,
            account,
            confirmations=chain.confirmations,
            on_fault=self._reach,
        )
        self._sender = Sender(self.outbox)
        self._market = Market(chain.chain_id, chain.market)
        self._content = open_agent_content(home, settings)
        self._children = Children()
        self._class = bytes.fromhex(find_class().id)
        self._profile = publish_profile(self._content, self._class)
        self._site = self.worksite(
            home, settings, account, self._market, self._content, self._children, self._reach
        )
        self.sight: Sight | None = None
        # Reorgs after which was looked what they took back; what happened before the start counts.
        self._reorgs = -1
        self.is_paused = False
        self._is_ending = False
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        log = structlog.get_logger()
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        log.info("started", worker=self.account.address, env_class=self._class.hex())
        failures = 0
        try:
            while not self._is_ending:
                try:
                    self.step()
                    failures = 0
                except (TransientError, OSError) as error:
                    # Such as no endpoint, or a full disk.
                    failures += 1
                    log.warning("waiting", reason=str(error), failures=failures)
                self._pause(failures)
        finally:
            self.close()
            log.info("ended")

    def step(self) -> None:
        """One look, and all that follows from it."""
        self._site.collect()
        self.sight = self._watcher.look()
        if self._watcher.reorgs != self._reorgs:
            for entry in self.outbox.revive():
                structlog.get_logger().warning("sent anew", action=entry.key, nonce=entry.nonce)
            self._reorgs = self._watcher.reorgs
        self._reach(Moment.BEFORE_DECIDING)
        for action in self.decide(self.situation()):
            self._try(action)
        self.outbox.step()

    def decide(self, situation: Situation) -> list[Action]:
        return decide(situation)

    def situation(self) -> Situation:
        sight = self.sight
        if sight is None:
            raise RuntimeError("nothing was seen yet")
        tasks = {path.name for path in (self.home.folder / "tasks").glob("*") if path.is_dir()}
        live = [
            number
            for number, task in sight.book.tasks.items()
            if task.state not in ENDED or slots_of(task, self.account.address)
        ]
        return Situation(
            me=self.account.address,
            market=self._market,
            book=sight.book,
            now=sight.now,
            block=sight.block,
            clock=time.time(),
            policy=self.settings.policy,
            env_class=self._class,
            progress={n: Shelf(self.home.task(n)).progress() for n in live if str(n) in tasks},
            purse=max(0, sight.purse - FEE_RESERVE_WEI),
            salt=self._salt,
            profile=self._profile,
            payout=self.settings.payout,
            margin_s=self.settings.chain.margin_s,
            is_paused=self.is_paused,
        )

    def close(self) -> None:
        self._children.stop_all()
        self._content.close()
        self._store.close()
        for end in self._wake:
            os.close(end)

    def _try(self, action: Action) -> None:
        """What cannot be done now must keep nothing else from being done."""
        try:
            self._perform(action)
        except NoEndpointError:
            raise
        except (TrainyardError, OSError) as error:
            name = type(action).__name__
            structlog.get_logger().warning("not done", action=name, reason=str(error))

    def _perform(self, action: Action) -> None:
        sight = self.sight
        if isinstance(action, Send):
            self._sender.send(action)
        elif sight is not None:
            self._site.perform(action, sight.book)

    def _salt(self, task: int, panel: tuple[int, int], seat: int) -> bytes:
        """Always the same for a seat, and known to nobody without the key: nothing can lose it."""
        about = [self._market.chain_id, self._market.address, task, *panel, seat]
        return hmac.digest(bytes(self.account.key), json.dumps(about).encode(), sha256().name)

    def _pause(self, failures: int) -> None:
        poll_s = self.settings.chain.poll_s
        wait_s = min(poll_s * 2**failures, max(_LONGEST_WAIT_S, poll_s)) if failures else poll_s
        if not self._is_ending:
            self._children.wait(wait_s, self._wake[0])

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending = True
        os.write(self._wake[1], b".")
