"""Bring one more worker to the running devnet, with a key of its own, and see it earn.

    .venv/bin/trainyard devnet up --agents 3
    .venv/bin/python -m examples.bring_a_worker.bring ~/my-worker

Each step is a command that you would type on a machine of your own; README.md has them one by one.
"""

import json
import secrets
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np

import trainyard
from trainyard.devnet.agents import as_root
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.place import default_folder

_COMMAND = (sys.executable, "-m", "trainyard", "worker")
_REGISTER_S = 300.0
_POLL_S = 0.5


def main() -> None:
    arguments = parse_arguments()
    home: Path = arguments.home.expanduser().absolute()
    net = Devnet.load(arguments.folder)
    address = make_worker(net, home)
    print(f"worker {address} in {home}")
    # Play money; on a real network you would send some.
    net.chain.fund([address], net.options)
    with running(home), trainyard.connect(folder=arguments.folder) as market:
        wait_until_known(market, address)
        print("it is registered, and can be drawn as an auditor")
        for _ in range(arguments.tasks):
            credited = train_something(market)
            if address in credited:
                break
            print("others were quicker and were drawn; once more")
        else:
            raise SystemExit(f"nothing came its way in {arguments.tasks} tasks: try again")
    print(worker("earnings", "--home", home))


def make_worker(net: Devnet, home: Path) -> str:
    """`trainyard worker init`, for this devnet: a folder with settings and a new key."""
    password = password_of(home)
    password.parent.mkdir(parents=True, exist_ok=True)
    password.touch(mode=0o600)
    password.write_text(secrets.token_urlsafe(24) + "\n")
    told = worker(
        *("init", "--home", home, "--password-file", password, "--json"),
        *("--endpoint", net.url, "--chain-id", net.chain_id),
        *("--market", net.market, "--start-block", net.start_block),
        # What it needs it fetches from the devnet; what it has it serves itself, and says where.
        *("--gateway", net.gateway, "--board", net.gateway, "--listen", free_address()),
        # The windows of a devnet are short, and a bond makes it an auditor as well.
        *(part for one in net.options.agent_settings for part in ("--set", one)),
        *(("--set", f'dapp.url="{net.dapp}"') if net.dapp else ()),
    )
    return str(json.loads(told)["address"])


def password_of(home: Path) -> Path:
    return home.with_name(f"{home.name}.password")


def worker(*arguments: object) -> str:
    """What `trainyard worker …` prints."""
    done = subprocess.run([*_COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return done.stdout


@contextmanager
def running(home: Path) -> Iterator[None]:
    """`trainyard worker run`, and at the end `drain`: it sees through what it has begun."""
    secret = ("--password-file", str(password_of(home)))
    command = [*_COMMAND, "run", *as_root(), "--home", str(home), *secret, "--quiet"]
    agent = subprocess.Popen(command)
    try:
        yield
        worker("drain", "--home", home, "--wait")
        agent.wait()
    finally:
        agent.terminate()
        agent.wait()


def wait_until_known(market: trainyard.Market, address: str) -> None:
    deadline = time.monotonic() + _REGISTER_S
    while time.monotonic() < deadline:
        known = market.read().book.workers.get(address)
        if known is not None and known.pool_index > 0:
            return
        time.sleep(_POLL_S)
    raise SystemExit(f"it is not registered after {_REGISTER_S:.0f} s: see its log")


def train_something(market: trainyard.Market) -> dict[str, str]:
    """A small task as anybody posts it, and who was paid for it."""
    x = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    history = trainyard.fit(small_model(), x, x.sum(axis=1) > 0, market=market, batch_size=20)
    print(f"task {history.task} is settled")
    return history.receipt.credited_wei


def small_model() -> Any:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu")])
    model.add(keras.layers.Dense(2))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("home", type=Path, help="a new folder for the worker")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="the devnet's")
    parser.add_argument("--tasks", type=int, default=10, help="tasks to post at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
