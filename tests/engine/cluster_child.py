"""One worker of a cluster that trains all small networks one after the other.

A cluster is formed once, since each of its processes takes seconds to start.
"""

import json
import sys
from pathlib import Path

from tests.engine.nets import NETS, manifest_of
from trainyard.engine import runtime


def main() -> None:
    workers, slot, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    runtime.start(threads=1)

    from trainyard.engine.cluster import join
    from trainyard.engine.data import open_folder
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Place, Training

    peers = [f"127.0.0.1:{20_000 + one}" for one in range(workers)]
    place = Place(slot, join(peers, slot))
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
    (folder / f"found-{slot}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
