"""The market as an agent's folder leads to it, for commands that need no running agent."""

import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trainyard.chain.calls import Call
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.keystore import address_in
from trainyard.chain.quantities import number_in
from trainyard.chain.reading import Reading, read_market
from trainyard.chain.receipts import tip_of
from trainyard.protocol.commitments import Market
from trainyard.protocol.ledger.book import Book
from worker_agent.past import folders
from worker_agent.progress import Shelf
from worker_agent.reporting import account_report, task_reports
from worker_agent.settings import Home, Settings, limits_of
from worker_agent.shelving import progress_of
from worker_agent.situation import ENDED, Ended, Situation, slots_of

_NO_SALT = bytes(32)


@dataclass(frozen=True, slots=True)
class Look:
    """All that can be known of an agent from its files and the chain."""

    home: Home
    settings: Settings
    me: str
    endpoints: Endpoints
    reading: Reading
    purse: int

    @property
    def now(self) -> int:
        """The chain's time, as far as its head and this machine's clock tell."""
        return max(self.reading.head.timestamp, int(time.time()))

    @property
    def block(self) -> int:
        return self.reading.head.ref.number

    def tasks(self, *, ended: bool) -> list[dict[str, Any]]:
        return task_reports(
            self.home, self.reading.book, self.me, self.now, self.block, ended=ended
        )

    def status(self) -> dict[str, Any]:
        """As a running agent would say it, of one that does not run."""
        chain = self.settings.chain
        return {
            "pid": None,
            "uptime_s": None,
            "address": self.me,
            "env_class": None,
            "mode": "not running, to be paused" if self.home.paused.exists() else "not running",
            "waits_for": [],
            "children": 0,
            "chain": {
                "chain_id": chain.chain_id,
                "market": chain.market,
                "head": self.block,
                "head_age_s": max(0, int(time.time()) - self.reading.head.timestamp),
                "lag_blocks": 0,
                "endpoints": self.endpoints.states(),
                "failures": 0,
                "why": "",
            },
            "account": account_report(self.reading.book, self.me, self.purse),
            "transactions": None,
            "tasks": self.tasks(ended=False),
        }

    def situation(self, env_class: bytes) -> Situation:
        """For asking why a task is not taken; nothing is signed here."""
        fees, tip = self.settings.chain.fees, self.endpoints.run(tip_of)
        return situation_of(
            self.home,
            self.settings,
            self.me,
            env_class,
            book=self.reading.book,
            now=self.now,
            block=self.block,
            purse=self.purse,
            gas_price=fees.price(self.reading.head, tip),
            salt=lambda task, panel, seat: _NO_SALT,
            is_paused=self.home.paused.exists(),
        )


def look(home: Home, settings: Settings) -> Look:
    chain, me = settings.chain, address_in(home.keystore)
    endpoints = Endpoints(chain.endpoints, chain_id=chain.chain_id)
    reading = read_market(endpoints, chain.market, chain.start_block)
    purse = endpoints.run(lambda rpc: number_in(rpc, rpc.request("eth_getBalance", me, "latest")))
    return Look(home, settings, me, endpoints, reading, purse)


def situation_of(
    home: Home,
    settings: Settings,
    me: str,
    env_class: bytes,
    *,
    book: Book,
    now: int,
    block: int,
    purse: int,
    gas_price: int,
    pending: Mapping[str, Call] = MappingProxyType({}),
    salt: Callable[[int, tuple[int, int], int], bytes],
    profile: bytes = b"",
    retired: int = 0,
    is_paused: bool = False,
    is_draining: bool = False,
    ended: Mapping[int, Ended] = MappingProxyType({}),
    at_rest: Container[int] = frozenset(),
    posted: Mapping[int, int] = MappingProxyType({}),
    opened: Mapping[int, int] = MappingProxyType({}),
    hindered: Mapping[int, tuple[str, str]] = MappingProxyType({}),
) -> Situation:
    """What a decision depends on, with how far we are as the task folders tell."""
    here = folders(home.tasks)
    # Not of all that ever were: there are ever more of them, and files are slow to read.
    read = [
        number
        for number in here
        if (task := book.tasks.get(number)) is not None
        and (task.state not in ENDED or (number not in at_rest and slots_of(task, me)))
    ]
    return Situation(
        me=me,
        market=Market(settings.chain.chain_id, settings.chain.market),
        book=book,
        now=now,
        block=block,
        clock=time.time(),
        policy=settings.policy,
        env_class=env_class,
        progress={
            number: progress_of(Shelf(home.task(number)), book.tasks[number]) for number in read
        },
        purse=max(0, purse),
        gas_price=gas_price,
        pending=pending,
        sandbox=limits_of(settings.sandbox),
        is_served=settings.content.is_served,
        salt=salt,
        profile=profile,
        payout=settings.payout,
        payout_float=settings.payout_float,
        margin_s=settings.chain.margin_s,
        confirmations=settings.chain.confirmations,
        join_confirmations=settings.chain.deep_enough_to_join,
        posted=posted,
        opened=opened,
        hindered=hindered,
        retired=retired,
        is_paused=is_paused,
        is_draining=is_draining,
        ended=ended,
        gone={
            number
            for number, task in book.tasks.items()
            if task.state in ENDED and number not in here
        },
    )
