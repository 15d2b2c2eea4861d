"""Gives brownie a Ganache of its own: `python -m scripts.fresh_chain scripts/demo.py [arguments]`.

Brownie attaches to whatever listens on the configured port, be it a chain that a crashed run left
behind or that of another checkout. What needs an empty chain takes a free port instead.
"""

import signal
import socket
import sys
from pathlib import Path

import brownie
from brownie._config import CONFIG

ROOT = Path(__file__).resolve().parents[1]
NETWORK = "ganache-cli"


def take_free_port() -> int:
    """Point brownie's Ganache, not started yet, at a port where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    CONFIG.networks[NETWORK]["cmd_settings"]["port"] = port
    return port


def step_clock() -> None:
    """Let time on brownie's Ganache, not started yet, pass by blocks, one second each.

    By the wall clock, a busy machine could send a transaction a second late.
    """
    CONFIG.networks[NETWORK]["cmd"] += " --miner.timestampIncrement 1"


def start_clock(at: str) -> None:
    """Let brownie's Ganache, not started yet, begin at a time of ours: the same blocks each time.

    Draws are made by the hashes of blocks, so the same transactions then draw the same people.
    """
    CONFIG.networks[NETWORK]["cmd"] += f" --chain.time {at}"


def stop_chain_with_us() -> None:
    """Treat a request to terminate like Ctrl-C: pytest stops, and brownie ends its Ganache."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    script, *arguments = sys.argv[1:]
    stop_chain_with_us()
    project = brownie.project.load(ROOT)
    project.load_config()
    take_free_port()
    brownie.network.connect(NETWORK)
    brownie.run(str(ROOT / script), args=arguments, project=project)


if __name__ == "__main__":
    main()
