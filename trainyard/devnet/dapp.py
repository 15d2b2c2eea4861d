"""The devnet's dapp: the page and its API, as a process of its own, with a faucet."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import urllib3

from trainyard.devnet.errors import DevnetError
from trainyard.devnet.files import write_whole
from trainyard.devnet.ports import HOST, free_port, is_free
from trainyard.devnet.process import Child

if TYPE_CHECKING:
    from trainyard.devnet.devnet import Devnet

_UP_S = 60.0
_POLL_S = 0.05
_STOP_S = 10.0
_PREFIX = "TRAINYARD_DAPP_"


@dataclass(frozen=True, slots=True)
class Dapp:
    port: int
    child: Child

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @classmethod
    def start(cls, devnet: "Devnet", port: int, on_end: Callable[[Child], None]) -> Self:
        """Serve it at the port where it was the last time, if that is free."""
        port = port if port and is_free(port) else free_port()
        settings = _settings(devnet, port)
        command = (sys.executable, "-m", "trainyard", "dapp", "serve")
        child = Child("dapp", command, devnet.place.dapp_log, on_end, settings)
        found = cls(port, child)
        try:
            found._wait()
        except BaseException:
            found.stop()
            raise
        return found

    def stop(self) -> None:
        self.child.stop(_STOP_S)

    def _wait(self) -> None:
        http = urllib3.PoolManager(retries=False, timeout=2.0)
        deadline = time.monotonic() + _UP_S
        while True:
            if self.child.ended.is_set():
                raise DevnetError(self.child.epitaph())
            try:
                if http.request("GET", f"{self.address}/healthz").status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise DevnetError(f"the dapp did not answer: {self.child.tail()}")
            time.sleep(_POLL_S)


def _key_file(devnet: "Devnet") -> Path:
    """A key has no business in a command line or an environment."""
    path = devnet.place.dapp / "faucet.key"
    path.parent.mkdir(exist_ok=True)
    write_whole(path, f"0x{devnet.accounts['faucet'].key.hex()}\n")
    return path


def _settings(devnet: "Devnet", port: int) -> dict[str, str]:
    content = devnet.content
    given = {
        "ENDPOINTS": devnet.url,
        "CHAIN_ID": str(devnet.chain_id),
        "CHAIN_NAME": "Trainyard devnet",
        "MARKET": devnet.market,
        "START_BLOCK": str(devnet.start_block),
        "WALLET_RPC_URL": devnet.url,
        "GATEWAY_URL": content.gateway,
        "GATEWAYS": content.gateway,
        "DATA": str(devnet.place.dapp),
        "HOST": HOST,
        "PORT": str(port),
        "POLL_S": "0.5",
        "CONFIRMATIONS": "2",
        "IS_DEVNET": "true",
        "FAUCET_KEY_FILE": str(_key_file(devnet)),
    }
    given |= {"KUBO": content.kubo} if content.kubo else {"STORE": str(content.store)}
    # What was set for another dapp is not for this one.
    cleared = {name: "" for name in os.environ if name.startswith(_PREFIX)}
    return {**cleared, **{_PREFIX + name: value for name, value in given.items()}}
