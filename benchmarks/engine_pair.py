"""Two workers of the engine, with a core each, who take their turns together.

    python -m benchmarks.engine_pair PART

They have a network of their own, as the workers of any run have on one machine.
"""

import os
import sys
from contextlib import ExitStack

from benchmarks.turns import answer, playing, read_part, say_ready
from trainyard.engine.seclusion import seclude

_PEERS = ("127.0.0.1:20000", "127.0.0.1:20001")


def main() -> None:
    seclude()
    part = read_part()
    cores = sorted(os.sched_getaffinity(0))
    parts = []
    for slot in range(len(_PEERS)):
        update = {
            "slot": slot,
            "peers": _PEERS,
            "core": cores[slot % len(cores)],
            "folder": part.job.folder / str(slot),
        }
        parts.append(part.model_copy(update={"job": part.job.model_copy(update=update)}))
    with ExitStack() as ending:
        # Neither is ready before the other is.
        workers = [ending.enter_context(playing("engine_children", one)) for one in parts]
        for worker in workers:
            worker.wait_until_ready()
        say_ready()
        for _ in sys.stdin:
            for worker in workers:
                worker.begin()
            turns = [worker.end() for worker in workers]
            answer(max(turns, key=lambda turn: turn.seconds))


if __name__ == "__main__":
    main()
