"""The agent: looks at the chain, decides, and acts, over and over."""

import hmac
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from types import FrameType

import structlog
from eth_account.signers.local import LocalAccount

from trainyard.chain.client import MarketClient
from trainyard.chain.cursor import Cursor
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import NoEndpointError
from trainyard.chain.journal import State
from trainyard.chain.outbox import Fault, Outbox
from trainyard.chain.store import Store
from trainyard.engine.classes import find_class
from trainyard.engine.journal import write_whole
from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import TrainyardError, TransientError
from trainyard.protocol.ledger import Book
from worker_agent.actions import Action, Hurry, MakeCard, Prepare, Send, Tell
from worker_agent.children import Children
from worker_agent.control import control_socket
from worker_agent.crowding import Turns, needs_turn
from worker_agent.deciding import decide
from worker_agent.deciding.draining import under_way
from worker_agent.deciding.forgetting import is_at_rest
from worker_agent.desk import Desk
from worker_agent.faults import Dying, Moment
from worker_agent.feeding import Feeder
from worker_agent.hindering import Hindrances
from worker_agent.joining import publish_profile
from worker_agent.looking import situation_of
from worker_agent.metrics import metrics_server
from worker_agent.notices import Notices
from worker_agent.opening import open_agent_content
from worker_agent.past import Past
from worker_agent.postings import is_of_another, marked
from worker_agent.retiring import UNBOND
from worker_agent.sending import Sender
from worker_agent.serving import Server
from worker_agent.settings import Home, Settings, TokenMarketError
from worker_agent.showing import Showcase
from worker_agent.sight import Sight, Watcher
from worker_agent.situation import Situation, slots_of
from worker_agent.waking import Waker
from worker_agent.working import Worksite

_LONGEST_WAIT_S = 60.0
_MANY = 4096
# Of the newest tasks whoever watches is told.
_MOST_FED = 8


def refuse_token(client: MarketClient) -> None:
    """Refuse a market whose money cannot be sent along: it would refuse every stake of ours."""
    token = client.currency()
    if token is not None:
        raise TokenMarketError(client.calls.address, token)


def wait_after(failures: int, poll_s: float) -> float:
    """Until the next look at the chain: longer and longer where nobody answers."""
    return float(min(poll_s * 2 ** min(failures, 30), max(_LONGEST_WAIT_S, poll_s)))


class NothingSeenError(TransientError):
    """The agent has only just begun, or no endpoint answers."""


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
        self.endpoints = Endpoints(chain.endpoints, chain_id=chain.chain_id)
        self.endpoints.check()
        self.store = Store(home.chain_store, chain_id=chain.chain_id, market=chain.market)
        cursor = Cursor(self.endpoints, self.store, chain.market, start=chain.start_block)
        self.watcher = Watcher(self.endpoints, cursor, account.address, chain.fees)
        self.outbox = Outbox(
            self.endpoints,
            self.store,
            account,
            confirmations=chain.confirmations,
            fees=chain.fees,
            on_fault=self._reach,
        )
        self._sender = Sender(self.outbox)
        self._market = Market(chain.chain_id, chain.market)
        self._content = open_agent_content(home, settings)
        self.children = Children(home.scratch)
        self.env_class = bytes.fromhex(find_class().id)
        places = settings.content
        self._notices = Notices(home)
        self._profile = self._publish()
        self._showcase = Showcase(home, places)
        self.site = self.worksite(
            home, settings, account, self._market, self._content, self.children, self._reach
        )
        self.sight: Sight | None = None
        self._past = Past(home)
        # Reorgs after which was looked what they took back; what happened before the start counts.
        self._reorgs = -1
        # For this run alone; `home.paused` is for every run.
        self.is_paused = False
        self.is_draining = False
        # Of looks at the chain in a row, and why the last one failed.
        self.failures = 0
        self.why = ""
        self._is_ending = False
        self._hindrances = Hindrances()
        # Whether the market holds the chain's own currency, as was asked once.
        self._is_native = False
        self._desk = Desk(self)
        self._servers: list[Server] = []
        self._turns = Turns(settings.policy.turns)
        self._waker = Waker(chain.wake_by)
        self._feeder: Feeder | None = None
        self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        log = structlog.get_logger()
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        with ExitStack() as parts:
            parts.callback(log.info, "ended")
            parts.callback(self.close)
            self._servers.append(
                parts.enter_context(control_socket(self.home.control, self._desk.answer))
            )
            if self.settings.metrics_port is not None:
                server = metrics_server(self, self.settings.metrics_port)
                self._servers.append(parts.enter_context(server))
            parts.callback(self._waker.close)
            parts.callback(self._showcase.close)
            self._showcase.see_to()
            if self.settings.dapp.url is not None:
                self._feeder = Feeder(self.settings.dapp.url, self.home, self.account, self._market)
                parts.callback(self._feeder.close)
            log.info("started", worker=self.account.address, env_class=self.env_class.hex())
            while not self._is_ending:
                self._try_step()
                self._pause()

    def _try_step(self) -> None:
        log = structlog.get_logger()
        try:
            self.step()
        except (TransientError, OSError) as error:
            # Such as no endpoint, or a full disk.
            self.failures, self.why = self.failures + 1, str(error)
            log.warning("waiting", reason=self.why, failures=self.failures)
            return
        self.failures, self.why = 0, ""
        if self.is_draining and self._is_drained():
            log.info("drained")
            self._is_ending = True

    def step(self) -> None:
        """One look, and all that follows from it."""
        self.site.collect()
        if not self._is_native:
            refuse_token(MarketClient(self.endpoints, self.settings.chain.market))
            self._is_native = True
        self.sight = self.watcher.look()
        if self.watcher.reorgs != self._reorgs:
            for entry in self.outbox.revive():
                structlog.get_logger().warning("sent anew", action=entry.key, nonce=entry.nonce)
            self._reorgs = self.watcher.reorgs
        self.site.shelving.sort(self.sight.book)
        self._reach(Moment.BEFORE_DECIDING)
        situation = replace(self.situation(), is_crowded=not self._turns.take())
        actions = self.decide(situation)
        self._past.at_rest.update(
            number
            for number in situation.ended
            if is_at_rest(situation, number, situation.book.tasks[number])
        )
        if not needs_turn(situation, actions):
            self._turns.give_back()
        for action in actions:
            self._try(action)
        self.site.release({one.task for one in actions if isinstance(one, Prepare)})
        if self._feeder is not None:
            self._feeder.watch(self._held())
        self._sender.step(partial(is_of_another, book=self.sight.book))

    def decide(self, situation: Situation) -> list[Action]:
        return decide(situation)

    def situation(self) -> Situation:
        sight = self.sight
        if sight is None:
            raise NothingSeenError("the agent has not seen the chain yet: ask again in a moment")
        return situation_of(
            self.home,
            self.settings,
            self.account.address,
            self.env_class,
            book=sight.book,
            now=sight.now,
            block=sight.block,
            # What was signed and is not mined yet is as good as spent.
            purse=sight.purse - self.outbox.pending_value(),
            gas_price=sight.gas_price,
            pending={one.key: one.call for one in self.outbox.unseen(sight.block - sight.lag)},
            salt=self._salt,
            profile=self._profile,
            retired=self.outbox.succeeded(UNBOND),
            is_paused=self.mode != "running",
            is_draining=self.is_draining,
            ended=self._past.look(sight.book, sight.now, sight.block),
            at_rest=self._past.at_rest,
            posted=sight.posted,
            opened=sight.opened,
            hindered=self._hindrances.look(self._sender.given_up, sight.book),
        )

    @property
    def mode(self) -> str:
        if self.is_draining:
            return "draining"
        return "paused" if self.is_paused or self.home.paused.exists() else "running"

    def wake(self) -> None:
        """Look at the chain without waiting any longer."""
        with suppress(BlockingIOError):
            os.write(self._wake[1], b".")

    def close(self) -> None:
        self.children.stop_all()
        self._turns.give_back()
        self._content.close()
        self.store.close()
        for end in self._wake:
            os.close(end)

    def _try(self, action: Action) -> None:
        """What cannot be done now must keep nothing else from being done."""
        try:
            self._perform(action)
        except NoEndpointError:
            raise
        except (TrainyardError, OSError) as error:
            if isinstance(action, MakeCard):
                self._hindrances.no_card(action.task, str(error))
            name = type(action).__name__
            structlog.get_logger().warning("not done", action=name, reason=str(error))

    def _perform(self, action: Action) -> None:
        sight = self.sight
        if isinstance(action, Send) and sight is not None:
            self._sender.send(replace(action, key=marked(action.key, sight.book)))
        elif isinstance(action, Hurry):
            self._sender.hurry(action)
        elif sight is not None:
            self.site.perform(action, sight)
            if isinstance(action, MakeCard):
                self._hindrances.has_card(action.task)
                # It is there now, and joining waits for nothing else.
                self.wake()
            if isinstance(action, Tell) and action.is_notice:
                self._give_notice(action)

    def _give_notice(self, action: Tell) -> None:
        """Let the requester know: in the profile, whose digest is sent at the next look."""
        self._notices.add(action.task, action.reason)
        # Also what could not be published at first, as on a full disk.
        if self._notices.all != self._published:
            self._profile = self._publish()
            self._showcase.look_again()
            self.wake()

    def _publish(self) -> bytes:
        gateway, notices = self.settings.content.gateway, self._notices.all
        digest = publish_profile(self._content, self.env_class, gateway, notices)
        write_whole(self.home.profile, digest.hex().encode())
        self._published = notices
        return digest

    def _salt(self, task: int, panel: tuple[int, int], seat: int) -> bytes:
        """Always the same for a seat, and known to nobody without the key: nothing can lose it."""
        about = [self._market.chain_id, self._market.address, task, *panel, seat]
        return hmac.digest(bytes(self.account.key), json.dumps(about).encode(), sha256().name)

    def _held(self) -> dict[int, int]:
        """The tasks in which we have a slot, also those that have only just ended."""
        book = self.sight.book if self.sight is not None else Book()
        held = {
            number: slots[0]
            for number, task in book.tasks.items()
            if (slots := slots_of(task, self.account.address))
        }
        return dict(sorted(held.items())[-_MOST_FED:])

    def _is_drained(self) -> bool:
        pending = self.outbox.counts()[State.PENDING]
        return not (pending or len(self.children) or under_way(self.situation()))

    def _pause(self) -> None:
        """Until it is time for another look, and meanwhile answer whoever asks."""
        until = time.monotonic() + wait_after(self.failures, self.settings.chain.poll_s)
        asked = {server.fileno() for server in self._servers}
        while not self._is_ending and (left_s := until - time.monotonic()) > 0:
            self._waker.see_to()
            self._showcase.see_to()
            handles = *self._waker.handles, *self._showcase.handles
            ready = self.children.wait(left_s, self._wake[0], *handles, *asked)
            for server in self._servers:
                server.serve()
            self._waker.read(ready)
            self._showcase.read(ready)
            if self._wake[0] in ready:
                os.read(self._wake[0], _MANY)
            if ready - asked:
                return

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending = True
        self.wake()
