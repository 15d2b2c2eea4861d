"""A devnet with agents, and its requester's side, for what belongs to `trainyard.fit`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import keras
import numpy as np
import pytest

import tests.quiet_web3  # noqa: F401
from tests.market.command import COMMAND
from tests.market.leftovers import leaving_nothing
from trainyard.content.lifeline import dying_with_parent
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import ChainTool, Options
from trainyard.devnet.place import default_folder
from trainyard.face import sandbox
from trainyard.sdk.connecting import market_of
from trainyard.sdk.market import Market

AGENTS, RECORDS, BATCH, EPOCHS = 3, 256, 32, 2
STEPS = RECORDS // BATCH * EPOCHS
PATIENCE_S = 300.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class World:
    """A devnet with agents, and its requester's side."""

    net: Devnet
    folder: Path
    market: Market

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
        # Who has no store of the devnet's has one of its own, which is empty.
        own = {"config": "XDG_CONFIG_HOME", "store": "TRAINYARD_STORE"}
        return kept | {name: str(self.folder / place) for place, name in own.items()}

    def nonce(self) -> int:
        """How many transactions the requester has sent."""
        who = self.market.owner
        return int(self.market.endpoints.call("eth_getTransactionCount", who, "latest"), 16)

    def run(
        self, command: Sequence[str], folder: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            preexec_fn=dying_with_parent(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def python(self, code: str, folder: Path | None = None) -> str:
        """What a process of its own prints, which finds the devnet by itself."""
        done = self.run([sys.executable, "-c", code], folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *arguments: object) -> tuple[int, Any]:
        """The exit code and the one document of a command."""
        done = self.run([*COMMAND, *map(str, arguments), "--json"])
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@contextmanager
def running_world(chain: ChainTool = "anvil") -> Iterator[World]:
    with ExitStack() as parts:
        folder = Path(parts.enter_context(TemporaryDirectory(prefix="trainyard-sdk-")))
        patch = parts.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        parts.enter_context(leaving_nothing(folder))
        options = Options(chain=chain, agents=AGENTS, dapp=True)
        # Where it is found by who says nothing of a folder.
        net = parts.enter_context(Devnet(default_folder(), options))
        market = parts.enter_context(market_of(net, sandbox))
        deadline = time.monotonic() + PATIENCE_S
        while sum(one.pool_index > 0 for one in market.read().book.workers.values()) < AGENTS:
            assert time.monotonic() < deadline, "the agents did not register"
            time.sleep(POLL_S)
        yield World(net, folder, market)


def small_model() -> Any:
    """Always with the same weights, so that a second one is the first one's twin."""
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((4,), name="point"),
            keras.layers.Dense(8, activation="relu", name="hidden"),
            keras.layers.Dropout(0.1, name="drop"),
            keras.layers.Dense(2, name="out"),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def points(seed: int, count: int = RECORDS) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    return x, (x.sum(axis=1) > 0).astype(np.int64)


def fingerprint(weights: list[Any]) -> str:
    return sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in weights)).hexdigest()


class Heard(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.calls.append("train begin")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.calls.append(f"epoch {epoch} end")

    def on_train_end(self, logs: Any = None) -> None:
        self.calls.append("train end")
