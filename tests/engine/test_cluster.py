"""What a cluster of any size computes, one process computes too, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.nets import NETS, manifest_of, rounds_manifest_of, write_data
from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Local

ROOT = Path(__file__).resolve().parents[2]


def hashes_of_cluster(workers: int, folder: Path) -> list[dict[str, list[str]]]:
    """What each worker says of all networks: the hashes of the first states."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.cluster_yard", str(workers), str(folder)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        capture_output=True,
        text=True,
        preexec_fn=dying_with_parent(),
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [json.loads((folder / f"found-{slot}.json").read_text()) for slot in range(workers)]


def hashes_of_one_process(net: str, workers: int, folder: Path) -> list[str]:
    manifest = manifest_of(net, workers=workers)
    data = open_folder(manifest.data.train, folder)
    training = Training(manifest, build(manifest), Material(data))
    states = [training.start()]
    for segment in range(2):
        states.append(training.run(segment, states[-1]).state)
    return [state.hash.hex() for state in states]


def hashes_of_rounds(net: str, workers: int, folder: Path) -> list[str]:
    manifest = rounds_manifest_of(net, workers)
    data = open_folder(manifest.data.train, folder)
    training = RoundsTraining(manifest, build(manifest), Material(data))
    globes = [training.start()]
    own: dict[int, State | None] = dict.fromkeys(range(workers))
    for number in range(training.plan.rounds):
        deltas: dict[int, State] = {}
        for slot in range(workers):
            part = training.local(Local(number, slot), globes[-1], own[slot])
            assert part.delta is not None
            own[slot], deltas[slot] = part.state, part.delta
        globes.append(training.merge(number, globes[-1], deltas))
    return [globe.hash.hex() for globe in globes]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
def test_one_process_finds_what_the_cluster_found(workers: int, tmp_path: Path) -> None:
    write_data(tmp_path)

    told = hashes_of_cluster(workers, tmp_path)

    assert told == [told[0]] * workers
    found = {net: hashes_of_one_process(net, workers, tmp_path) for net in NETS}
    in_rounds = {f"{net} in rounds": hashes_of_rounds(net, workers, tmp_path) for net in NETS}
    assert told[0] == found | in_rounds
