"""The process behind `trainyard devnet up`: it holds the folder, runs everything, and outlives
the terminal. Started as `python -m trainyard.devnet.supervisor FOLDER OPTIONS PIPE`.

What it starts dies with it, so there is one process to end, however this one ends.
"""

import json
import os
import queue
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import FrameType

with warnings.catch_warnings():
    # web3 loads a part of its own that is deprecated, which is nothing that we could change.
    warnings.simplefilter("ignore", DeprecationWarning)
    import web3  # noqa: F401

from trainyard.devnet.agents import wait_for_agents
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options
from trainyard.devnet.process import Child
from trainyard.protocol.errors import TrainyardError

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _AskedToStopError(BaseException):
    """A signal that came while the devnet was coming up."""


def main(folder: Path, options: Options, pipe: int) -> int:
    """Run until a signal, or until the chain ends.

    The pipe hears what is waited for, and as its last line that all is ready, or why not.
    """
    ends: queue.SimpleQueue[Child | None] = queue.SimpleQueue()
    _on_signals(_raise)

    def report(line: str) -> None:
        _tell(pipe, line)

    devnet = Devnet(folder, options, report=report, on_end=ends.put)
    try:
        with devnet:
            missing = wait_for_agents(devnet, devnet.agents, report)
            _on_signals(lambda *_: ends.put(None))
            _say(f"up at {devnet.url}")
            _answer(pipe, {"ready": True, "missing": {one.name: str(one.log) for one in missing}})
            code = _wait(ends)
            # From here on it ends, and asking again does not make it faster.
            _on_signals(signal.SIG_IGN)
    except _AskedToStopError:
        _answer(pipe, {"error": "it was ended while it came up"})
        return 1
    except (TrainyardError, OSError) as error:
        _say(str(error))
        _answer(pipe, {"error": str(error)})
        return 1
    _say("down")
    return code


def _wait(ends: "queue.SimpleQueue[Child | None]") -> int:
    while True:
        child = ends.get()
        if child is None:
            return 0
        _say(child.epitaph())
        if child.name != "dapp" and not child.name.startswith("worker-"):
            # Without its chain it is nothing, and half a devnet would only puzzle people.
            return 1


def _on_signals(handler: object) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)  # type: ignore[arg-type]


def _raise(number: int, frame: FrameType | None) -> None:
    _on_signals(signal.SIG_IGN)
    raise _AskedToStopError


def _say(line: str) -> None:
    print(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {line}", flush=True)


def _tell(pipe: int, line: str) -> None:
    _say(line)
    _write(pipe, {"told": line})


def _answer(pipe: int, said: dict[str, object]) -> None:
    _write(pipe, said)
    with suppress(OSError):
        os.close(pipe)


def _write(pipe: int, said: dict[str, object]) -> None:
    # Who asked may be gone: that is no reason to stop.
    with suppress(OSError):
        os.write(pipe, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Options(**json.loads(sys.argv[2])), int(sys.argv[3])))
