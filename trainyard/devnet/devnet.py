"""A devnet: for a test, the length of a block; for everybody else, one that runs in its folder."""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from eth_account.signers.local import LocalAccount

from trainyard.content.settings import ContentSettings
from trainyard.devnet.accounts import people_of, phrase_of
from trainyard.devnet.agents import Agent, start_agents
from trainyard.devnet.chain import Chain, OwnChain
from trainyard.devnet.contents import ContentPlace, RunningContent, running_content
from trainyard.devnet.dapp import Dapp
from trainyard.devnet.errors import DevnetError, NotRunningError
from trainyard.devnet.market import deploy_market, is_there
from trainyard.devnet.options import CHAIN_ID, DEVNET_PARAMS, Options
from trainyard.devnet.place import Place
from trainyard.devnet.process import Child, birth_of
from trainyard.devnet.record import Market, Ports, Record, Running
from trainyard.protocol.market import Params

Report = Callable[[str], None]


class Devnet:
    """A market that runs on this machine, and all that one needs to take part in it.

    Used as a context manager it starts everything, and ends everything with the block; should the
    process be killed, the kernel ends it. `Devnet.load` is for a devnet that runs already.
    """

    def __init__(
        self,
        folder: Path | None = None,
        options: Options | None = None,
        *,
        params: Params = DEVNET_PARAMS,
        report: Report = lambda line: None,
        on_end: Callable[[Child], None] = lambda child: None,
    ) -> None:
        """Without a folder it lies in one of its own, which goes away with it.

        `on_end` is told of whatever ends by itself.
        """
        self._options, self._params = options or Options(), params
        self._report, self._on_end = report, on_end
        self._folder = folder
        self._parts: ExitStack | None = None
        self._market: Market | None = None
        self._chain: Chain | None = None
        self._content: ContentPlace | None = None
        self._agents: list[Agent] = []
        self._dapp: Dapp | None = None
        # The page's address, if the options ask for it.
        self.dapp: str | None = None
        self.accounts: Mapping[str, LocalAccount] = {}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The devnet that runs in a folder."""
        place = Place(folder)
        record, running = Record.read(place), Running.read(place)
        if place.holder() is None or record is None or record.market is None or running is None:
            raise NotRunningError(
                f"no devnet runs in {folder}: start one with 'trainyard devnet up'"
            )
        devnet = cls(folder, record.options, params=record.market.params)
        devnet._market, devnet._chain = record.market, Chain(place, running.url)
        store = None if running.kubo else place.content
        devnet._content = ContentPlace(running.gateway, store=store, kubo=running.kubo)
        devnet.dapp = running.dapp
        devnet.accounts = people_of(phrase_of(place), record.options)
        return devnet

    def __enter__(self) -> Self:
        with ExitStack() as parts:
            if self._folder is None:
                scratch = tempfile.TemporaryDirectory(prefix="trainyard-devnet-")
                self._folder = Path(parts.enter_context(scratch))
            parts.enter_context(self.place.held())
            while not self._start(parts.enter_context(ExitStack())):
                self.place.forget()
            self._parts = parts.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None

    @property
    def place(self) -> Place:
        if self._folder is None:
            raise NotRunningError("a devnet without a folder has one only while it runs")
        return Place(self._folder)

    @property
    def options(self) -> Options:
        return self._options

    @property
    def url(self) -> str:
        return self.chain.url

    @property
    def chain_id(self) -> int:
        return CHAIN_ID

    @property
    def chain(self) -> Chain:
        if self._chain is None:
            raise NotRunningError("the devnet does not run: enter it first")
        return self._chain

    @property
    def market(self) -> str:
        return self._deployed.address

    @property
    def start_block(self) -> int:
        return self._deployed.start_block

    @property
    def params(self) -> Params:
        return self._deployed.params

    @property
    def gateway(self) -> str:
        return self.content.gateway

    @property
    def content(self) -> ContentPlace:
        if self._content is None:
            raise NotRunningError("the devnet does not run: enter it first")
        return self._content

    @property
    def content_settings(self) -> ContentSettings:
        """For whoever keeps content in this devnet, such as its requester."""
        place = self.content
        given = {"kubo": place.kubo} if place.kubo else {"store": place.store, "kubo": None}
        return ContentSettings(gateways=place.gateway, **given)

    @property
    def agents(self) -> list[Agent]:
        """Those that this process started."""
        return list(self._agents)

    def require_chain(self) -> None:
        """DevnetError if the chain that this process has started has ended."""
        if isinstance(self._chain, OwnChain) and self._chain.child.ended.is_set():
            raise DevnetError(self._chain.child.epitaph())

    def advance_chain_clock(self, seconds: int) -> None:
        """Put the chain's clock forward, for windows that nobody wants to wait for."""
        self.chain.advance(seconds)

    @property
    def _deployed(self) -> Market:
        if self._market is None:
            raise NotRunningError("the devnet does not run: enter it first")
        return self._market

    def _start(self, parts: ExitStack) -> bool:
        """Start everything; False, with all of it ended, where it has to begin anew."""
        place = self.place
        place.running.unlink(missing_ok=True)
        record = self._remembered()
        content = parts.enter_context(running_content(place, self._options, record.ports))
        chain = self._start_chain(record, parts)
        if record.market is not None and not is_there(chain, record.market):
            self._report(
                "the chain has forgotten the market, as a chain does that was killed before it "
                "could write: all begins anew, with other accounts"
            )
            parts.close()
            return False
        self.accounts = people_of(phrase_of(place), self._options)
        chain.fund([person.address for person in self.accounts.values()], self._options)
        self._market = record.market or deploy_market(chain, self.accounts["owner"], self._params)
        self._content = content.place
        if self._options.dapp:
            self._dapp = Dapp.start(self, record.ports.dapp, self._on_end)
            parts.callback(self._dapp.stop)
            self.dapp = self._dapp.address
        dapp_port = self._dapp.port if self._dapp else 0
        ports = replace(content.ports, chain=chain.port, dapp=dapp_port)
        people = {name: str(person.address) for name, person in self.accounts.items()}
        Record(self._options, ports, self._market, people).write(place)
        self._agents = start_agents(self, parts, self._on_end, self._report)
        self._running(content, chain).write(place)
        parts.callback(place.running.unlink, missing_ok=True)
        return True

    def _remembered(self) -> Record:
        """What the folder's devnet was; this one has to be the same."""
        place = self.place
        record = Record.read(place)
        if record is None or record.market is None:
            # Nothing was ever finished here, so nobody knows of it.
            place.forget()
            return Record(self._options, Ports())
        for name in ("chain", "content"):
            there, wanted = getattr(record.options, name), getattr(self._options, name)
            if there != wanted:
                raise DevnetError(
                    f"the devnet in {place.folder} has {name} {there}, not {wanted}: "
                    "name another --folder, or 'trainyard devnet reset' to begin anew"
                )
        return replace(record, options=self._options)

    def _start_chain(self, record: Record, parts: ExitStack) -> OwnChain:
        chain = OwnChain.start(self.place, self._options, record.ports.chain, self._on_end)
        parts.callback(chain.stop)
        self._chain = chain
        return chain

    def _running(self, content: RunningContent, chain: OwnChain) -> Running:
        pids = {"devnet": os.getpid(), self._options.chain: chain.child.pid}
        if content.pid is not None:
            pids["kubo"] = content.pid
        if self._dapp is not None:
            pids["dapp"] = self._dapp.child.pid
        pids |= {agent.name: agent.child.pid for agent in self._agents}
        processes = {name: (pid, birth_of(pid) or 0) for name, pid in pids.items()}
        place = content.place
        return Running(chain.url, place.gateway, place.kubo, processes, self.dapp)
