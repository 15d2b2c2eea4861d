"""A worker keeps what it fetched for a task, so that auditors have it even if nobody else does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agent.books import CLASS
from tests.engine.nets import NETS
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.datasets import add_arrays
from trainyard.engine.material import fetch_files
from trainyard.engine.pacing import Paces
from trainyard.protocol.errors import TransientError
from trainyard.protocol.manifest import Manifest
from worker_agent.fetching import fetch, manifest_of
from worker_agent.jobs import FetchJob
from worker_agent.joining import publish_block
from worker_agent.progress import FETCHED, Shelf
from worker_agent.settings import Home
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


def posted(content: Content) -> Manifest:
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
            },
        }
    )
    publish_block(content, manifest.canonical)
    return manifest


@pytest.mark.parametrize("keep", [True, False])
def test_auditor_has_the_data_from_the_worker_when_the_requester_is_gone(
    tmp_path: Path, keep: bool
) -> None:
    home, shelf = Home(tmp_path / "home"), Shelf(tmp_path / "home" / "tasks" / "1")
    home.folder.mkdir()
    paces = Paces(threads=1, start_s=1.0, step_s=dict.fromkeys(_KINDS, 0.001))
    speed = Speed(measured_at=0.0, cores=1, paces=paces)
    home.speed.write_text(speed.model_dump_json())
    with somebody(tmp_path / "requester") as own, GatewayServer(own) as requester:
        manifest = posted(own)
        job = FetchJob(
            home=home.folder,
            task=1,
            manifest=manifest.digest.hex(),
            env_class=CLASS.hex(),
            slots=1,
            segments=manifest.plan.segments,
            is_audited=True,
        )
        with somebody(tmp_path / "worker", requester.address) as content:
            fetch(job, home, shelf, content, keep=keep)
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
