"""A real server on a port of its own, and somebody who talks to it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from dapp.app import create_app
from dapp.indexer.indexing import head_of_index
from dapp.serving import Server, config_of, listen
from dapp.settings import Settings, read_settings
from tests.dapp.yard import Yard
from trainyard.engine.confining import Confinement

_PATIENCE_S = 60.0


class Client(httpx.Client):
    """A client of the API, and for tests that look inside the application itself."""

    app: FastAPI

    def json(self, path: str, **params: Any) -> Any:
        answer = self.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


def settings_for(yard: Yard, folder: Path, url: str | None = None, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "endpoints": (yard.url,),
        "chain_id": yard.chain_id,
        "market": yard.market,
        "start_block": yard.start,
        "data": folder / "dapp",
        "database_url": url,
        "port": 0,
        "poll_s": 0.1,
        "requests_per_s": 10_000.0,
        "request_burst": 10_000,
        "costly_per_min": 10_000.0,
    }
    return read_settings(**given | more)


@contextmanager
def serving(app: FastAPI, settings: Settings) -> Iterator[str]:
    """The address of a server that runs inside the block."""
    listener = listen(settings)
    server = Server(config_of(app))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
    )
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive(), "the server")
        assert server.started
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_PATIENCE_S)
        listener.close()


@contextmanager
def dapp_for(
    settings: Settings, *, confinement: Confinement | None = None, static: Path | None = None
) -> Iterator[Client]:
    app = create_app(settings, confinement=confinement, static=static)
    with (
        serving(app, settings) as address,
        Client(base_url=f"{address}/api/v1", timeout=_PATIENCE_S, trust_env=False) as client,
    ):
        client.app = app
        wait_for(lambda: _is_ready(client), "the index")
        yield client


def wait_for(is_there: Callable[[], Any], what: str, patience_s: float = _PATIENCE_S) -> Any:
    deadline = time.monotonic() + patience_s
    while not (found := is_there()):
        assert time.monotonic() < deadline, f"{what} is not there after {patience_s:.0f} s"
        time.sleep(0.02)
    return found


def caught_up(client: Client, yard: Yard) -> None:
    """Until the index is at the head of the chain, and not at one that was taken back."""
    head = yard.anvil.web3.eth.get_block("latest")
    database = client.app.state.services.database

    def is_at_head() -> bool:
        with database.reading() as session:
            block = head_of_index(session)
        return block is not None and block.hash == bytes(head["hash"])

    wait_for(is_at_head, "the index")


def _is_ready(client: Client) -> bool:
    return client.get(str(client.base_url.join("/readyz"))).status_code == 200
