"""One Spark and one market for all tests here: both take a while to start."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

import tests.quiet_web3  # noqa: F401
from tests.market.leftovers import leaving_nothing
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options
from trainyard.face import sandbox
from trainyard.sdk.connecting import market_of
from trainyard.sdk.market import Market
from trainyard.spark import init_nncontext

if TYPE_CHECKING:
    from pyspark import SparkContext

AGENTS = 3
# The least that Spark starts with.
HEAP_BYTES = 512 << 20
_PATIENCE_S = 300.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class World:
    """A market with agents and a page, and Spark with a small heap."""

    market: Market
    context: "SparkContext"


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    with ExitStack() as parts:
        folder = Path(parts.enter_context(TemporaryDirectory(prefix="trainyard-spark-")))
        patch = parts.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        parts.enter_context(leaving_nothing(folder))
        options = Options(chain="anvil", agents=AGENTS, dapp=True)
        net = parts.enter_context(Devnet(folder / "net", options))
        market = parts.enter_context(market_of(net, sandbox))
        # The agents calibrate their machine meanwhile.
        context = parts.enter_context(_spark(folder))
        deadline = time.monotonic() + _PATIENCE_S
        while sum(one.pool_index > 0 for one in market.read().book.workers.values()) < AGENTS:
            assert time.monotonic() < deadline, "the agents did not register"
            time.sleep(_POLL_S)
        yield World(market, context)


@contextmanager
def _spark(folder: Path) -> Iterator["SparkContext"]:
    conf = {
        "spark.driver.memory": f"{HEAP_BYTES >> 20}m",
        "spark.local.dir": str(folder / "spark"),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    context = init_nncontext("trainyard tests", conf, master="local[2]")
    gateway = context._gateway
    assert gateway is not None
    try:
        yield context
    finally:
        context.stop()
        # Else its Java lives as long as this process.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        type(context)._gateway = type(context)._jvm = None
