"""A worker keeps what it fetched for a task, so that auditors have it even if nobody else does."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.agent.books import CLASS
from tests.engine.nets import NETS
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import LimitExceededError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.datasets import add_arrays
from trainyard.devnet.ports import free_port
from trainyard.engine.material import fetch_files
from trainyard.engine.pacing import Paces
from trainyard.protocol.errors import TransientError
from trainyard.protocol.manifest import Manifest
from worker_agent import work
from worker_agent.fetching import fetch, manifest_of
from worker_agent.jobs import FetchJob
from worker_agent.joining import publish_block
from worker_agent.opening import bytes_in, within_bounds
from worker_agent.progress import FETCHED, Shelf
from worker_agent.settings import Home, Settings, read_settings
from worker_agent.speed import Speed

_RECORDS = 96
_KINDS = ("least", "convolution", "product", "recurrence")


@contextmanager
def somebody(folder: Path, *sources: str) -> Iterator[Content]:
    content = Content(EmbeddedStore(folder), [GatewaySource(source) for source in sources])
    try:
        yield content
    finally:
        content.close()


def posted(content: Content, **training: Any) -> Manifest:
    """What a requester has, with more in the data's folder than the task reads."""
    numbers = np.random.default_rng(1)
    arrays = {
        "image": numbers.integers(0, 256, (_RECORDS, 12, 12, 1), np.uint8),
        "label": numbers.integers(0, 10, _RECORDS).astype(np.int64),
        "unused": np.zeros(_RECORDS),
    }
    source: dict[str, Any] = {
        "kind": "npz",
        "path": f"ipfs://{add_arrays(content, arrays).cid}",
        "records": _RECORDS,
        "features": {
            "image": {"dtype": "uint8", "shape": [12, 12, 1]},
            "label": {"dtype": "int64", "shape": []},
        },
        "inputs": ["image"],
        "target": "label",
    }
    manifest = Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": [12, 12, 1], "dtype": "uint8"}],
                "layers": NETS["mlp"],
                "outputs": ["out"],
            },
            "data": {"train": source},
            "training": {
                "batch": 16,
                "until": {"steps": 4},
                "seed": 3,
                "optimizer": {"type": "Adam", "learning_rate": 0.001},
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
                **training,
            },
        }
    )
    publish_block(content, manifest.canonical)
    return manifest


def machine(folder: Path) -> Home:
    """A home on one that was measured."""
    home = Home(folder)
    home.folder.mkdir()
    paces = Paces(threads=1, start_s=1.0, step_s=dict.fromkeys(_KINDS, 0.001))
    speed = Speed(measured_at=0.0, cores=1, paces=paces)
    home.speed.write_text(speed.model_dump_json())
    return home


def configure(home: Home, more: str = "") -> Settings:
    chain = {"endpoints": ["http://127.0.0.1:1"], "chain_id": 1, "market": "0x" + "11" * 20}
    said = "".join(f"{key} = {json.dumps(value)}\n" for key, value in chain.items())
    home.config.write_text(f"[chain]\n{said}start_block = 0\n{more}")
    return read_settings(home)


def job_of(home: Home, manifest: Manifest) -> FetchJob:
    return FetchJob(
        home=home.folder,
        task=1,
        manifest=manifest.digest.hex(),
        env_class=CLASS.hex(),
        slots=1,
        segments=manifest.plan.segments,
        is_audited=True,
    )


def test_task_is_estimated_by_the_cores_that_the_operator_lets_it_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all there are, one would be taken that cannot be finished in time."""
    hours = []
    for name, sandbox in {"all": "", "quarter": "[sandbox]\ncores = 0.25\n"}.items():
        home = machine(tmp_path / name)
        configure(home, sandbox)
        with somebody(home.content_store) as content:
            job = job_of(home, posted(content))
        (tmp_path / "job.json").write_text(job.model_dump_json())
        monkeypatch.setattr(sys, "argv", ["work", str(tmp_path / "job.json")])
        work.main()
        hours.append(Shelf(home.task(1)).read(FETCHED)["hours"])

    assert hours[1] == pytest.approx(4 * hours[0])


def test_rounds_of_one_worker_are_passed_over(tmp_path: Path) -> None:
    """It would wait for somebody to merge with, until it loses its stake."""
    home, shelf = machine(tmp_path / "home"), Shelf(tmp_path / "home" / "tasks" / "1")
    alone: dict[str, Any] = {"mode": "rounds", "workers": 1, "steps_per_segment": 2}
    with somebody(home.content_store) as content:
        job = job_of(home, posted(content, **alone, rounds={"local_steps": 2}))
        fetch(job, home, configure(home), shelf, content)

    assert shelf.progress().refused == (
        "its manifest cannot be used: rounds of one worker have nothing to merge: post it in mode "
        "single"
    )


@pytest.mark.parametrize("keep", [True, False])
def test_auditor_has_the_data_from_the_worker_when_the_requester_is_gone(
    tmp_path: Path, keep: bool
) -> None:
    home, shelf = machine(tmp_path / "home"), Shelf(tmp_path / "home" / "tasks" / "1")
    with somebody(tmp_path / "requester") as own, GatewayServer(own) as requester:
        manifest = posted(own)
        job = job_of(home, manifest)
        with somebody(tmp_path / "worker", requester.address) as content:
            served = f'[content]\nlisten = "127.0.0.1:{free_port()}"\n' if keep else ""
            fetch(job, home, configure(home, served), shelf, content)
    assert shelf.read(FETCHED)["mode"] == "single"

    other = Shelf(tmp_path / "auditor")
    with (
        somebody(tmp_path / "worker") as own,
        GatewayServer(own) as worker,
        somebody(tmp_path / "empty", worker.address) as auditor,
    ):
        if keep:
            found = manifest_of(job.manifest, other, auditor)
            files = fetch_files(found, auditor, other.path("data"))
            assert sorted(path.name for path in files.train.iterdir()) == ["image.npy", "label.npy"]
        else:
            with pytest.raises(TransientError):
                manifest_of(job.manifest, other, auditor)


def test_data_is_fetched_only_as_far_as_there_is_room_and_what_it_takes_is_known_before(
    tmp_path: Path,
) -> None:
    """Or a stranger's post could fill the disk, on which everything else is journaled."""
    home, shelf = machine(tmp_path / "home"), Shelf(tmp_path / "home" / "tasks" / "1")
    settings = configure(home, "[policy]\nmax_disk_bytes = 10000\n")
    with somebody(tmp_path / "requester") as own, GatewayServer(own) as requester:
        job = job_of(home, posted(own))
        with (
            somebody(tmp_path / "worker", requester.address) as content,
            pytest.raises(LimitExceededError, match=r"raise policy\.max_disk_bytes"),
        ):
            fetch(job, home, settings, shelf, content)

    found = shelf.progress().fetched
    assert found is not None
    assert not found.is_whole
    # Images of 144 bytes and labels of 8, and twice each state.
    assert found.disk_bytes > _RECORDS * 152
    assert bytes_in(shelf.path("data")) == 0


def test_data_that_is_here_already_needs_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An auditor looks at it again for each of its answers, also when the disk is full since."""
    home, shelf = machine(tmp_path / "home"), Shelf(tmp_path / "home" / "tasks" / "1")
    settings = configure(home)
    with somebody(tmp_path / "content") as content:
        manifest = posted(content)
        fetch(job_of(home, manifest), home, settings, shelf, content)
        full = SimpleNamespace(total=1 << 40, free=0)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
        with within_bounds(content, settings, shelf.path("data")) as bounded:
            fetch_files(manifest, bounded, shelf.path("data"))
        with (
            within_bounds(content, settings, tmp_path / "new") as bounded,
            pytest.raises(LimitExceededError, match="make room on the disk"),
        ):
            fetch_files(manifest, bounded, tmp_path / "new")
