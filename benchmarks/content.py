"""What verified content costs, beside the unverified and the local: `make bench-content`.

    python -m benchmarks.content [--quick]     the figures; last, one line of JSON

Each figure is a ratio against a baseline measured in the same run, turn by turn, since machines are
noisy: medians over the turns count. The node is a private Kubo on loopback.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path

import urllib3

from benchmarks.content_children import (
    RECORDS,
    EpochTimes,
    measure_stream_rss_mb,
    time_epochs,
    write_mnist_records,
)
from benchmarks.reporting import Figure, report
from trainyard.content.build import build_file
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_binary import obtain_kubo
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import MIB
from trainyard.content.names import ContentPath

_FILE_BYTES = 100 * MIB
_SMALL_FILES = 2_000
_STREAM_BYTES = 2_000_000_000
_EPOCH_ROUNDS = 6


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def drain(chunks: Iterable[bytes | memoryview]) -> int:
    return sum(len(chunk) for chunk in chunks)


def measure_cid(file: Path, turns: int) -> float:
    def build() -> None:
        with file.open("rb", buffering=0) as stream:
            build_file(stream, lambda cid, block: None)

    return _FILE_BYTES / 1e6 / min(seconds(build) for _ in range(turns))


def measure_add(file: Path, folder: Path, turns: int) -> float:
    """Adding to the embedded store, all on disk when it ends, against copying and syncing."""

    def copy(target: Path) -> None:
        shutil.copyfile(file, target)
        with target.open("rb") as copied:
            os.fsync(copied.fileno())

    ratios = []
    for turn in range(turns):
        content = Content(EmbeddedStore(folder / f"store{turn}"))
        os.sync()
        copied = seconds(lambda: copy(folder / "copy"))
        os.sync()
        added = seconds(lambda: content.add(file))  # noqa: B023 - called at once
        ratios.append(added / copied)
        shutil.rmtree(folder / f"store{turn}")
    return statistics.median(ratios)


def measure_read(api: str, kubo: Content, file: Path, turns: int) -> float:
    """A verified read against the node's own unverified `cat`, through the same address."""
    path = ContentPath(kubo.add(file).cid)
    pool = urllib3.PoolManager()

    def unverified() -> None:
        answer = pool.request("POST", f"{api}/api/v0/cat?arg={path}", preload_content=False)
        if drain(answer.stream(MIB)) != _FILE_BYTES:
            raise RuntimeError("the node's cat gave another number of bytes")

    def verified() -> None:
        if drain(kubo.cat(path)) != _FILE_BYTES:
            raise RuntimeError("the verified read gave another number of bytes")

    unverified()
    verified()
    baseline = [seconds(unverified) for _ in range(1)]
    ratios = []
    for _ in range(turns):
        ratios.append(seconds(verified) / baseline[-1])
        baseline.append(seconds(unverified))
    return statistics.median(ratios)


def measure_small_files(kubo: Content, folder: Path, turns: int) -> float:
    source = folder / "small"
    source.mkdir()
    for index in range(_SMALL_FILES):
        (source / f"{index:05d}.txt").write_bytes(os.urandom(512))
    path = ContentPath(kubo.add(source).cid)
    reader = Content(EmbeddedStore(folder / "small-store"), [kubo.store])
    return min(
        seconds(lambda turn=turn: reader.get(path, folder / f"small-out{turn}"))  # type: ignore[misc]
        for turn in range(turns)
    )


def measure(folder: Path, *, quick: bool) -> tuple[list[Figure], EpochTimes]:
    turns = 3 if quick else 7
    file = folder / "file"
    with file.open("wb") as out:
        for _ in range(_FILE_BYTES // MIB):
            out.write(os.urandom(MIB))
    records = write_mnist_records(folder, _EPOCH_ROUNDS)
    with KuboNode(obtain_kubo(), folder / "kubo") as node:
        kubo = Content(KuboStore(node.api_url))
        cid_mb_per_s = measure_cid(file, turns)
        add = measure_add(file, folder, turns)
        read = measure_read(node.api_url, kubo, file, turns)
        small = measure_small_files(kubo, folder, min(turns, 3))
        cids = [kubo.add(each).cid for each in records]
        epochs = time_epochs(cids, records, node.api_url, folder, processes=1 if quick else 4)
    rss = measure_stream_rss_mb(_STREAM_BYTES, folder)
    return [
        Figure("tfrecord_cold_ratio", "TFRecord epoch, cold ÷ local disk", epochs.cold_ratio, 1.3),
        Figure("tfrecord_warm_ratio", "TFRecord epoch, warm ÷ local disk", epochs.warm_ratio, 1.05),
        Figure("verified_read_ratio", "verified read of 100 MB ÷ the node's cat", read, 1.2),
        Figure("cid_mb_per_s", "CID of 100 MB, MB/s", cid_mb_per_s, 500, at_least=True),
        Figure("add_ratio", "add of 100 MB ÷ cp + fsync", add, 3),
        Figure("small_files_s", "2,000 small files as one directory, s", small, 2),
        Figure("stream_rss_mb", "RSS while 2 GB stream in and out, MB", rss, 200),
    ], epochs


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer turns: under three minutes")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-content-"))
    try:
        figures, epochs = measure(folder, quick=options.quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(report("Verified content", figures, f"{RECORDS:,} records; {epochs.told}"))


if __name__ == "__main__":
    main()
