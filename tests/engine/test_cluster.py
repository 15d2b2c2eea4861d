"""What a cluster of any size computes, one process computes too, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.nets import NETS, manifest_of, write_data
from trainyard.engine.data import open_folder
from trainyard.engine.program import build
from trainyard.engine.training import Material, Training

ROOT = Path(__file__).resolve().parents[2]


def hashes_of_cluster(workers: int, folder: Path) -> list[dict[str, list[str]]]:
    """What each worker says of all networks: the hashes of the first states."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.cluster_yard", str(workers), str(folder)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        capture_output=True,
        text=True,
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


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
def test_one_process_finds_what_the_cluster_found(workers: int, tmp_path: Path) -> None:
    write_data(tmp_path)

    told = hashes_of_cluster(workers, tmp_path)

    assert told == [told[0]] * workers
    assert told[0] == {net: hashes_of_one_process(net, workers, tmp_path) for net in NETS}
