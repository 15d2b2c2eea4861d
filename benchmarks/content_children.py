"""The measurements of `benchmarks.content` that need a process of their own."""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from examples.mnist.prepare import load_mnist
from trainyard.content.cid import Cid
from trainyard.datasets.example import encode_example
from trainyard.datasets.tfrecord import frame

RECORDS = 60_000
_TIMEOUT_S = 600
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """Seconds of epochs. A process takes a local one, and then a round for each file."""

    local: list[float]
    cold: list[float]
    warm: list[float]
    cold_ratio: float
    warm_ratio: float

    @classmethod
    def of(cls, processes: list[list[list[float]]]) -> "EpochTimes":
        """Each epoch against the mean of the local ones just before and just after it, so that
        what slows the machine for a while slows both; of these ratios the median.
        """
        local, cold, warm, cold_ratios, warm_ratios = [], [], [], [], []
        for rounds in processes:
            for before, fetched, between, cached, after in rounds:
                cold_ratios.append(2 * fetched / (before + between))
                warm_ratios.append(2 * cached / (between + after))
                local += [before, between]
                cold.append(fetched)
                warm.append(cached)
        return cls(
            local, cold, warm, statistics.median(cold_ratios), statistics.median(warm_ratios)
        )

    @property
    def told(self) -> str:
        names = {"local": self.local, "cold": self.cold, "warm": self.warm}
        return ", ".join(
            f"{name} {statistics.median(each):.2f} s ({min(each):.2f} to {max(each):.2f})"
            for name, each in names.items()
        )


def write_mnist_records(folder: Path, rounds: int) -> list[Path]:
    """All 60,000 training images of MNIST as a TFRecord file, once a round.

    Each begins with another image, so that no file has a block of another."""
    records = _mnist_records()
    files = []
    for turn in range(rounds):
        start = turn * RECORDS // rounds
        files.append(folder / f"mnist-{turn}.tfrecord")
        files[-1].write_bytes(b"".join(records[start:] + records[:start]))
    return files


def _mnist_records() -> list[bytes]:
    train = load_mnist()["train"]
    return [
        frame(
            encode_example({"image": [image.tobytes()], "label": np.array([label], dtype=np.int64)})
        )
        for image, label in zip(train["image"], train["label"], strict=True)
    ]


def time_epochs(
    cids: list[Cid], files: list[Path], kubo: str, folder: Path, processes: int
) -> EpochTimes:
    """Each process is a TensorFlow with an empty cache, and takes each file once in turn."""
    told = []
    for process in range(processes):
        environment = {
            **os.environ,
            "TRAINYARD_KUBO": kubo,
            "TRAINYARD_STORE": str(folder / f"epoch-store{process}"),
            "IPTF_CACHE": str(folder / f"epoch-cache{process}"),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        pairs = [f"{cid}={file}" for cid, file in zip(cids, files, strict=True)]
        told.append(json.loads(_run_child(["epochs", *pairs], environment)))
    return EpochTimes.of(told)


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


def _epochs(pairs: list[str]) -> None:
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
    before = [epoch(pairs[0].partition("=")[2]) for _ in range(3)][-1]
    rounds = []
    for pair in pairs:
        cid, _, local = pair.partition("=")
        remote = f"ipfs://{cid}"
        rounds.append([before, *(epoch(path) for path in (remote, local, remote, local))])
        before = rounds[-1][-1]
    print(json.dumps(rounds))


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
    if sys.argv[1] == "epochs":
        _epochs(sys.argv[2:])
    else:
        _stream(int(sys.argv[2]), Path(sys.argv[3]))
