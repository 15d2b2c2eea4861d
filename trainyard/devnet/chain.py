"""The devnet's chain: started, its clock put right, its people funded."""

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from trainyard.chain.blocks import Header, head_of
from trainyard.chain.errors import EndpointError
from trainyard.chain.rpc import Rpc
from trainyard.devnet.errors import DevnetError
from trainyard.devnet.files import write_whole
from trainyard.devnet.options import CHAIN_ID, Options
from trainyard.devnet.place import Place
from trainyard.devnet.ports import HOST, free_port, is_free
from trainyard.devnet.process import Child
from trainyard.devnet.tools import SET_BALANCE, command_of, find_tool

_START_S = 60.0
_STOP_S = 10.0
_POLL_S = 0.02
# Somebody else may take the port between our look and the tool's.
_TRIES = 3


class Chain:
    """A chain that answers at `url`."""

    def __init__(self, place: Place, url: str) -> None:
        self.place, self.url = place, url
        self._rpc = Rpc(url, timeout_s=30.0)

    def request(self, method: str, *params: Any) -> Any:
        return self._rpc.request(method, *params)

    def head(self) -> Header:
        return head_of(self._rpc)

    def mine(self) -> None:
        self.request("evm_mine")

    def advance(self, seconds: int) -> None:
        """Put the chain's clock forward, and mine a block that has the new time."""
        if seconds < 0:
            raise DevnetError("a chain's clock goes forward only: advance it by 0 s or more")
        before = _read_ahead(self.place)
        # Before it happens: a chain that was ahead must not come back behind.
        write_whole(self.place.clock, str(before + seconds))
        self.request("evm_increaseTime", seconds)
        self.mine()

    def fund(self, addresses: Iterable[str], options: Options) -> None:
        """Give to everybody who has nothing at all."""
        for address in addresses:
            if int(self.request("eth_getBalance", address, "latest"), 16) == 0:
                self.request(SET_BALANCE[options.chain], address, hex(options.balance_wei))


class OwnChain(Chain):
    """A chain that this process started."""

    def __init__(self, place: Place, url: str, child: Child) -> None:
        super().__init__(place, url)
        self.child = child

    @classmethod
    def start(
        cls,
        place: Place,
        options: Options,
        remembered_port: int,
        on_end: Callable[[Child], None],
    ) -> "OwnChain":
        """Start it where it was the last time, or at any free port at first."""
        program = find_tool(options.chain)
        place.chain.mkdir(exist_ok=True)
        for tries_left in reversed(range(_TRIES)):
            port = remembered_port or free_port()
            if not is_free(port):
                raise DevnetError(
                    f"port {port}, where the chain was, is somebody else's now: end what listens "
                    "there, or 'trainyard devnet reset'"
                )
            began = time.time()
            command = cls._command(place, options, program, port)
            child = Child(options.chain, command, place.chain_log, on_end)
            chain = cls(place, f"http://{HOST}:{port}", child)
            try:
                if chain._answers():
                    chain._go_on(options, began)
                    return chain
            except BaseException:
                chain.stop()
                raise
            if remembered_port or not tries_left:
                break
        raise DevnetError(f"the chain did not start: {child.epitaph()}")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def stop(self) -> None:
        self.child.stop(_STOP_S)

    @staticmethod
    def _command(place: Place, options: Options, program: Path, port: int) -> list[str]:
        return command_of(
            options.chain,
            program,
            port=port,
            folder=place.chain,
            block_time_s=options.block_time_s,
            ahead_s=_read_ahead(place),
        )

    def _answers(self) -> bool:
        """Wait for it; False if it ended instead."""
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self.child.ended.wait(_POLL_S):
                return False
            try:
                found = int(self.request("eth_chainId"), 16)
            except EndpointError:
                continue
            if found != CHAIN_ID:
                raise DevnetError(f"what answers at {self.url} is chain {found}, not ours")
            return True
        raise DevnetError(f"the chain did not answer within {_START_S:.0f} s: {self.child.tail()}")

    def _go_on(self, options: Options, began: float) -> None:
        """Let time go on where it stood: neither tool keeps its clock."""
        ahead, now = _read_ahead(self.place), time.time()
        # Where the last block is later than that, which nothing but a changed clock of the machine
        # explains, it counts.
        lacking = max(0, math.ceil(self.head().timestamp - now - ahead))
        if options.chain == "anvil":
            lacking += ahead
        elif ahead:
            # It was told at its start where to begin, and came to it a moment later.
            lacking += math.ceil(now - began)
        if lacking:
            self.request("evm_increaseTime", lacking)
        if options.chain == "anvil" and options.block_time_s:
            self.request("evm_setIntervalMining", options.block_time_s)


def _read_ahead(place: Place) -> int:
    """By how many seconds the chain's clock was put forward, since it began."""
    try:
        return int(place.clock.read_text())
    except FileNotFoundError:
        return 0
