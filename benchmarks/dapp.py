"""How much the dapp's one process bears: `make bench-dapp`.

    python -m benchmarks.dapp [--quick] [--only PART]     the figures; last, one line of JSON

A market of its own on anvil, whose events are indexed from nothing. Then the server as operators
start it, with 500 open streams and 200 requests a second on loopback, while tasks are posted. Times
are counted from when a request was due, so a server that stalls cannot hide it. The limits of rates
are raised, since all of it comes from one address.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from benchmarks.anvil import Anvil, running_anvil
from benchmarks.growth import play_replicate_lives
from benchmarks.lives import ACCOUNTS, LiveMarket
from benchmarks.reporting import Figure, report
from dapp.database.engine import open_database
from dapp.indexer.indexing import Chain, Indexer
from dapp.indexer.telling import Teller
from dapp.pages import BUILT, packed
from dapp.settings import Settings
from trainyard.chain.endpoints import Endpoints
from trainyard.content.lifeline import dying_with_parent
from trainyard.protocol.market import Policy

_EVENTS, _QUICK_EVENTS = 100_000, 20_000
# What a life of one worker under Replicate leaves behind.
_EVENTS_PER_LIFE = 9
_CLIENTS, _RATE = 500, 200
_SECONDS = 60.0
_POST_EVERY_S = 2.0
_START_BLOCK = 3
_UP_S = 300.0
_MOST_TASKS = 1_000


def fill(anvil: Anvil, events: int) -> LiveMarket:
    """A market with about so many events."""
    market = LiveMarket(anvil)
    market.audit(1)
    play_replicate_lives(market, events // _EVENTS_PER_LIFE)
    return market


def measure_index(market: LiveMarket, folder: Path) -> tuple[int, float]:
    """From an empty database to the head: how many events, and how many a second."""
    database = open_database(f"sqlite:///{folder / 'index.sqlite'}")
    chain_id = market.anvil.web3.eth.chain_id
    endpoints = Endpoints([market.anvil.url], chain_id=chain_id, timeout_s=120.0)
    chain = Chain(chain_id, str(market.address), _START_BLOCK)
    # As the server does it: what is told is kept in the same transactions.
    kept = (Settings.model_fields[name].default for name in ("kept_live", "kept_live_bytes"))
    indexer = Indexer(database, endpoints, chain, tell=Teller(*kept))
    began = time.perf_counter()
    indexer.catch_up()
    took = time.perf_counter() - began
    count = indexer.taken()
    database.close()
    return count, count / took


@contextmanager
def running_server(
    market: LiveMarket, folder: Path
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The server as operators start it, with its index at the head; and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    given = {
        "ENDPOINTS": market.anvil.url,
        "CHAIN_ID": str(market.anvil.web3.eth.chain_id),
        "MARKET": str(market.address),
        "START_BLOCK": str(_START_BLOCK),
        "DATA": str(folder / "dapp"),
        "PORT": str(port),
        "POLL_S": "0.5",
        "REQUESTS_PER_S": "100000",
        "REQUEST_BURST": "100000",
    }
    environment = os.environ | {f"TRAINYARD_DAPP_{name}": one for name, one in given.items()}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainyard", "dapp", "serve"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=dying_with_parent(),
        )
    try:
        _wait_until_ready(port)
        yield process, port
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + _UP_S
    while time.monotonic() < deadline:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            if answer.status == 200:
                return
        time.sleep(0.5)
    raise SystemExit(f"the server was not ready after {_UP_S:.0f} s")


@dataclass(frozen=True, slots=True)
class Load:
    """What streams and requests came to."""

    open: int
    heard: list[int]
    ms: list[float]
    errors: int
    posted: int
    # Of one core, while requests came.
    server_cpu: float


def measure_load(market: LiveMarket, folder: Path, seconds: float) -> Load:
    """500 streams and 200 requests a second, while tasks are posted."""
    with (
        running_server(market, folder) as (server, port),
        running_load(port, seconds, market.count) as load,
    ):
        assert load.stdout is not None
        assert load.stdin is not None
        if load.stdout.readline() != "open\n":
            raise SystemExit(f"the streams could not be opened; see {folder / 'server.log'}")
        began, cpu_s, posted = time.perf_counter(), _cpu_s(server.pid), 0
        while time.perf_counter() < began + seconds:
            market.post(Policy.REPLICATE, 1)
            posted += 1
            time.sleep(_POST_EVERY_S)
        used = (_cpu_s(server.pid) - cpu_s) / (time.perf_counter() - began)
        # What was posted last is heard by all before the streams end.
        time.sleep(_POST_EVERY_S)
        load.stdin.write("enough\n")
        load.stdin.flush()
        return Load(**json.loads(load.stdout.readline()), posted=posted, server_cpu=used)


@contextmanager
def running_load(port: int, seconds: float, tasks: int) -> Iterator["subprocess.Popen[str]"]:
    """Who listens and asks, in a process of its own: what posts is not to slow it down."""
    command = [sys.executable, "-m", "benchmarks.dapp_load", str(port)]
    with subprocess.Popen(
        [*command, str(_CLIENTS), str(_RATE), str(seconds), str(min(tasks, _MOST_TASKS))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=dying_with_parent(),
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _cpu_s(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_page() -> float:
    """Kilobytes of JavaScript that the server sends for the first load."""
    index = BUILT / "index.html"
    if not index.is_file():
        raise SystemExit("the page is not built: run 'make page'")
    names = re.findall(r'(?:src|href)="/?([^"]+\.js)"', index.read_text())
    return sum(len(packed(BUILT / name)) for name in set(names)) / 1000


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer events")
    parser.add_argument("--only", choices=("index", "load", "page"))
    given = parser.parse_args()
    figures: list[Figure] = []
    with ExitStack() as parts:
        if given.only != "page":
            folder = Path(parts.enter_context(TemporaryDirectory(prefix="trainyard-bench-")))
            anvil = parts.enter_context(running_anvil(accounts=ACCOUNTS))
            market = fill(anvil, _QUICK_EVENTS if given.quick else _EVENTS)
            figures += _chain_figures(market, folder, only=given.only)
    if given.only in (None, "page"):
        figures.append(
            Figure(
                "page_js_gzip_kb", "JavaScript of the first load, gzipped kB", measure_page(), 250
            )
        )
    sys.exit(report("The dapp", figures, "one process, SQLite, loopback"))


def _chain_figures(market: LiveMarket, folder: Path, *, only: str | None) -> list[Figure]:
    figures = []
    if only != "load":
        count, rate = measure_index(market, folder)
        print(f"{count} events were indexed", flush=True)
        figures.append(Figure("index_events_per_s", "events indexed a second", rate, 2_000, True))
    if only != "index":
        load = measure_load(market, folder, _SECONDS)
        heard = sum(count >= load.posted for count in load.heard)
        print(
            f"{len(load.ms)} requests, median {percentile(load.ms, 0.5):.1f} ms, 99 of 100 within "
            f"{percentile(load.ms, 0.99):.1f} ms; {load.posted} tasks posted meanwhile; the server "
            f"took {load.server_cpu:.2f} of a core; load of the machine {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        figures += [
            Figure(
                "sse_clients", "streams that heard everything", min(heard, load.open), 500, True
            ),
            Figure(
                "http_p95_ms",
                "95 of 100 requests within, ms",
                percentile(load.ms, 0.95),
                200,
            ),
            Figure("http_errors", "requests that failed", load.errors, 0),
        ]
    return figures


if __name__ == "__main__":
    main()
