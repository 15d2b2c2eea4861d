"""Sharding and reading more than the memory that it takes."""

import subprocess
import sys
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent

RECORDS, RECORD_BYTES = 20_000, 4_000
PROGRAM = """
import sys
from pathlib import Path

import numpy as np

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.datasets import open_shards, write_shards

count, size = int(sys.argv[2]), int(sys.argv[3])


def peak_kib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def records():
    random = np.random.default_rng(0)
    for number in range(count):
        yield {"x": random.integers(0, 256, size, dtype=np.uint8), "y": number}


root = Path(sys.argv[1])
content = Content(EmbeddedStore(root / "store"))
write_shards(content, [{"x": 1}], shards=1, seed=0)  # all that is imported late
before = peak_kib()
sharded = write_shards(content, records(), shards=4, seed=1, scratch=root)
assert sum(1 for _ in open_shards(content, ContentPath(sharded.cid))) == count
print(peak_kib() - before)
"""


def test_80_mb_of_records_take_a_fraction_of_that(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(RECORDS), str(RECORD_BYTES)],
        capture_output=True,
        text=True,
        preexec_fn=dying_with_parent(),
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 24 * 1024
    assert {path.name for path in tmp_path.iterdir()} == {"store"}
