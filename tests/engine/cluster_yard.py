"""Starts clusters, one after the other, where only their workers can reach each other.

All workers are forks of this process, which has imported TensorFlow and computed nothing with it:
to import it takes longer than all that they compute.
"""

import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.seclusion import seclude


def main() -> None:
    folder, nets = Path(sys.argv[1]), sys.argv[2].split(",")
    threads, *counts = (int(one) for one in sys.argv[3:])
    seclude()
    from trainyard.engine import runtime

    runtime.start(threads=threads)
    from tests.engine.cluster_child import work, work_alone

    for workers in counts:
        children = [
            fork(partial(work, workers, slot, folder, nets, threads)) for slot in range(workers)
        ]
        if threads > 1:
            # Who compares has one.
            children.append(fork(partial(work_alone, workers, folder, nets, threads)))
        for child in children:
            _, status = os.waitpid(child, 0)
            if status:
                # The others end with this process.
                sys.exit(f"a worker of {workers} ended with status {status}")


def fork(work: Callable[[], None]) -> int:
    prepare = dying_with_parent()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        prepare()
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
