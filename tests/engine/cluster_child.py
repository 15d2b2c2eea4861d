"""One worker of a cluster that trains all small networks one after the other, in both modes.

TensorFlow has to be set up before this is imported.
"""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.engine.nets import manifest_of, rounds_manifest_of
from trainyard.engine.cluster import join
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.training import Material, Place, Training
from trainyard.protocol.manifest import Local

ALONE = "alone"


def found_file(folder: Path, workers: int, slot: int | str) -> Path:
    return folder / f"found-{workers}-{slot}.json"


def work(workers: int, slot: int, folder: Path, nets: Iterable[str], threads: int) -> None:
    # Each cluster has ports of its own: those of the one before may not be free yet.
    peers = [f"127.0.0.1:{20_000 + 100 * workers + one}" for one in range(workers)]
    place = Place(slot, join(peers, slot)) if workers > 1 else None
    found = {}
    for net in nets:
        manifest = manifest_of(net, workers=workers, threads=threads)
        in_rounds = rounds_manifest_of(net, workers, threads=threads)
        material = Material(open_folder(manifest.data.train, folder))
        # Both are the same network with the same first weights, which both read before they train.
        program = build(manifest)
        training = Training(manifest, program, material, place)
        rounds = RoundsTraining(in_rounds, program, material)
        found[net] = hashes_of(training)
        found[f"{net} in rounds"] = list(meet(rounds, slot, folder / f"{net}-{workers}"))
    found_file(folder, workers, slot).write_text(json.dumps(found))


def work_alone(workers: int, folder: Path, nets: Iterable[str], threads: int) -> None:
    """What all workers of a cluster compute, in one process."""
    found = {}
    for net in nets:
        manifest = manifest_of(net, workers=workers, threads=threads)
        in_rounds = rounds_manifest_of(net, workers, threads=threads)
        material = Material(open_folder(manifest.data.train, folder))
        program = build(manifest)
        training = Training(manifest, program, material)
        rounds = RoundsTraining(in_rounds, program, material)
        found[net] = hashes_of(training)
        found[f"{net} in rounds"] = hashes_of_rounds(rounds)
    found_file(folder, workers, ALONE).write_text(json.dumps(found))


def hashes_of(training: Training) -> list[str]:
    states = [training.start()]
    for segment in range(2):
        states.append(training.run(segment, states[-1]).state)
    return [state.hash.hex() for state in states]


def hashes_of_rounds(training: RoundsTraining) -> list[str]:
    globes = [training.start()]
    own: dict[int, State | None] = dict.fromkeys(range(training.plan.workers))
    for number in range(training.plan.rounds):
        deltas: dict[int, State] = {}
        for slot in own:
            part = training.local(Local(number, slot), globes[-1], own[slot])
            assert part.delta is not None
            own[slot] = part.state if training.plan.goes_on else None
            deltas[slot] = part.delta
        globes.append(training.merge(number, globes[-1], deltas))
    return [globe.hash.hex() for globe in globes]


def meet(training: RoundsTraining, slot: int, folder: Path) -> Iterator[str]:
    """Take part in all rounds; deltas are handed over in files. The hashes of all global states."""
    folder.mkdir(exist_ok=True)
    globe, own = training.start(), None
    yield globe.hash.hex()
    for number in range(training.plan.rounds):
        part = training.local(Local(number, slot), globe, own)
        own = part.state if training.plan.goes_on else None
        if part.delta is None:
            raise RuntimeError(f"worker {slot} diverged")
        part.delta.save(folder / f"{number}-{slot}")
        paths = {one: folder / f"{number}-{one}" for one in range(training.plan.workers)}
        while not all(path.exists() for path in paths.values()):
            time.sleep(0.01)
        globe = training.merge(number, globe, {one: State.load(paths[one]) for one in paths})
        yield globe.hash.hex()
