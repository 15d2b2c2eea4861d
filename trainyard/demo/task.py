"""The task of the demo: LeNet-5 on MNIST, by two workers in one TensorFlow cluster."""

from typing import Any

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.datasets import add_arrays
from trainyard.demo.mnist import read_mnist
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, Terms

ETHER = 10**18
REWARD = STAKE = ETHER // 10
FEE = ETHER // 100
WORKERS = 2
AUDITS = 2
_BATCH, _EPOCHS, _STEPS_PER_SEGMENT = 512, 2, 20

_LAYERS = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {
        "name": "c1",
        "type": "Conv2D",
        "filters": 6,
        "kernel_size": 5,
        "activation": "relu",
        "padding": "same",
    },
    {"name": "s2", "type": "MaxPooling2D"},
    {"name": "c3", "type": "Conv2D", "filters": 16, "kernel_size": 5, "activation": "relu"},
    {"name": "s4", "type": "MaxPooling2D"},
    {"name": "flat", "type": "Flatten"},
    {"name": "c5", "type": "Dense", "units": 120, "activation": "relu"},
    {"name": "f6", "type": "Dense", "units": 84, "activation": "relu"},
    {"name": "out", "type": "Dense", "units": 10},
]


def add_manifest(content: Content, *, workers: int = WORKERS) -> Manifest:
    """Put the data and the manifest where workers find them."""
    sources = {
        part: _source(str(add_arrays(content, arrays).cid), len(arrays["label"]))
        for part, arrays in read_mnist().items()
    }
    manifest = Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": [28, 28, 1], "dtype": "uint8"}],
                "layers": _LAYERS,
                "outputs": ["out"],
            },
            "data": sources,
            "training": {
                "mode": "sync" if workers > 1 else "single",
                "workers": workers,
                "threads": 1,
                "batch": _BATCH,
                "until": {"epochs": _EPOCHS},
                "steps_per_segment": _STEPS_PER_SEGMENT,
                "seed": 1,
                "optimizer": {"type": "Adam", "learning_rate": 0.004},
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
                "metrics": [{"type": "SparseCategoricalAccuracy", "name": "accuracy"}],
            },
        }
    )
    with content.store.batch() as batch:
        cid = Cid(Codec.RAW, manifest.digest)
        batch.put(cid, manifest.canonical)
        batch.pin(cid)
    return manifest


def terms_of(manifest: Manifest, env_class: bytes, *, audit_for: int, answer_for: int) -> Terms:
    """Only the last window is waited for; the others end when all have answered."""
    workers = manifest.training.workers
    return Terms(
        manifest=manifest.digest,
        env_class=env_class,
        policy=Policy.AUDIT,
        slots=workers,
        quorum=(workers + 1) // 2,
        audits=AUDITS,
        min_audits=AUDITS,
        reward=REWARD,
        stake=STAKE,
        audit_fee=FEE,
        segments=manifest.plan.segments,
        join_for=120,
        train_for=900,
        audit_for=audit_for,
        answer_for=answer_for,
        challenge_for=5,
    )


def _source(cid: str, records: int) -> dict[str, Any]:
    return {
        "kind": "npz",
        "path": f"ipfs://{cid}",
        "records": records,
        "features": {
            "image": {"dtype": "uint8", "shape": [28, 28, 1]},
            "label": {"dtype": "uint8", "shape": []},
        },
        "inputs": ["image"],
        "target": "label",
    }
