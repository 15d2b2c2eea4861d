"""What a cluster of any size computes, one process computes too, to the last bit."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.cluster_child import found_file
from tests.engine.nets import NETS, manifest_of, rounds_manifest_of, write_data
from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Local

ROOT = Path(__file__).resolve().parents[2]
SIZES = (1, 2, 3, 4, 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the data, and with what the workers of all clusters say: hashes of the first states."""
    folder = tmp_path_factory.mktemp("clusters")
    write_data(folder)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.cluster_yard", str(folder), *map(str, SIZES)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        capture_output=True,
        text=True,
        preexec_fn=dying_with_parent(),
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return folder


@dataclass(frozen=True)
class Alone:
    """What plays all workers of a cluster of one size in this process."""

    training: Training
    rounds: RoundsTraining


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[tuple[str, int], Alone]:
    """Of one program for each network, whose first weights all read before any of them trains."""
    opened = {}
    for net in NETS:
        program = build(manifest_of(net))
        material = Material(open_folder(manifest_of(net).data.train, folder))
        for workers in SIZES:
            training = Training(manifest_of(net, workers=workers), program, material)
            rounds = RoundsTraining(rounds_manifest_of(net, workers), program, material)
            opened[net, workers] = Alone(training, rounds)
    return opened


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


@pytest.mark.parametrize("workers", SIZES)
def test_one_process_finds_what_the_cluster_found(
    workers: int, folder: Path, alone: dict[tuple[str, int], Alone]
) -> None:
    told = [json.loads(found_file(folder, workers, slot).read_text()) for slot in range(workers)]

    assert told == [told[0]] * workers
    found = {net: hashes_of(alone[net, workers].training) for net in NETS}
    in_rounds = {f"{net} in rounds": hashes_of_rounds(alone[net, workers].rounds) for net in NETS}
    assert told[0] == found | in_rounds
    assert len({tuple(hashes) for hashes in told[0].values()}) == 2 * len(NETS)
