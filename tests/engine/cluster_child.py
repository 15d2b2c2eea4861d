"""One worker of a cluster that trains all small networks one after the other, in both modes.

A cluster is formed once, since each of its processes takes seconds to start.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.engine.nets import NETS, manifest_of, rounds_manifest_of
from trainyard.engine import runtime
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local

if TYPE_CHECKING:
    from trainyard.engine.rounds import RoundsTraining


def main() -> None:
    workers, slot, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    runtime.start(threads=1)

    from trainyard.engine.cluster import join
    from trainyard.engine.data import open_folder
    from trainyard.engine.program import build
    from trainyard.engine.rounds import RoundsTraining
    from trainyard.engine.training import Material, Place, Training

    peers = [f"127.0.0.1:{20_000 + one}" for one in range(workers)]
    place = Place(slot, join(peers, slot)) if workers > 1 else None
    found = {}
    for net in NETS:
        manifest = manifest_of(net, workers=workers)
        data = open_folder(manifest.data.train, folder)
        training = Training(manifest, build(manifest), Material(data), place)
        state = training.start()
        hashes = [state.hash.hex()]
        for segment in range(2):
            state = training.run(segment, state).state
            hashes.append(state.hash.hex())
        found[net] = hashes
        manifest = rounds_manifest_of(net, workers)
        rounds = RoundsTraining(manifest, build(manifest), Material(data))
        found[f"{net} in rounds"] = list(meet(rounds, slot, folder / f"{net}-{workers}"))
    (folder / f"found-{slot}.json").write_text(json.dumps(found))


def meet(training: "RoundsTraining", slot: int, folder: Path) -> Iterator[str]:
    """Take part in all rounds; deltas are handed over in files. The hashes of all global states."""
    folder.mkdir(exist_ok=True)
    globe, own = training.start(), None
    yield globe.hash.hex()
    for number in range(training.plan.rounds):
        part = training.local(Local(number, slot), globe, own)
        own = part.state
        if part.delta is None:
            raise RuntimeError(f"worker {slot} diverged")
        part.delta.save(folder / f"{number}-{slot}")
        paths = {one: folder / f"{number}-{one}" for one in range(training.plan.workers)}
        while not all(path.exists() for path in paths.values()):
            time.sleep(0.01)
        globe = training.merge(number, globe, {one: State.load(paths[one]) for one in paths})
        yield globe.hash.hex()


if __name__ == "__main__":
    main()
