"""What a cluster of any size computes, one process computes too, to the last bit."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine.cluster_child import ALONE, found_file, hashes_of, hashes_of_rounds
from tests.engine.nets import NETS, manifest_of, rounds_manifest_of, write_data
from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.training import Material, Training

ROOT = Path(__file__).resolve().parents[2]
SIZES = (1, 2, 3, 4, 8)


def run_clusters(folder: Path, nets: Iterable[str], threads: int, sizes: Iterable[int]) -> Path:
    """The folder with the data, and with what the workers say: hashes of the first states."""
    write_data(folder)
    said = [str(folder), ",".join(nets), str(threads), *map(str, sizes)]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.cluster_yard", *said],
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_clusters(tmp_path_factory.mktemp("clusters"), NETS, 1, SIZES)


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


def test_one_process_of_two_threads_finds_what_a_cluster_of_such_found(tmp_path: Path) -> None:
    run_clusters(tmp_path, ["lenet"], 2, [2])

    told = [json.loads(found_file(tmp_path, 2, slot).read_text()) for slot in (0, 1, ALONE)]

    assert told == [told[0]] * 3
    assert {len(set(hashes)) for hashes in told[0].values()} == {3}
