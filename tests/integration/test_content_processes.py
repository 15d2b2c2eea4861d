"""The store under several processes, crashes, full disks and large files."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath

ROOT = Path(__file__).parents[2]


@contextmanager
def child(*arguments: str, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    command = [*before, sys.executable, "-m", "tests.integration.content_child", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def facts(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def outcome(*arguments: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    with child(*arguments, before=before) as process:
        (fact,) = facts(process)
        assert process.wait() == 0
    return fact


def assert_whole(store: EmbeddedStore) -> int:
    """Every block in the store is what its name says; how many there are."""
    paths = list(store.root.glob("blocks/*/*"))
    for path in paths:
        assert Cid(Codec.RAW, bytes.fromhex(path.name)).matches(path.read_bytes())
    return len(paths)


def test_a_crash_in_a_batch_leaves_nothing(tmp_path: Path) -> None:
    with child("hold_a_batch", str(tmp_path / "store")) as process:
        assert next(facts(process)) == {"ready": True}
        assert any((tmp_path / "store" / "staging").iterdir())
        process.send_signal(signal.SIGKILL)
        process.wait()

    store = EmbeddedStore(tmp_path / "store")

    assert assert_whole(store) == 0
    assert list((store.root / "staging").iterdir()) == []


@pytest.mark.parametrize("files", [1, 4, 9])
def test_a_crash_at_any_time_leaves_whole_blocks(tmp_path: Path, files: int) -> None:
    finished = []
    with child("add_without_end", str(tmp_path / "store")) as process:
        for fact in facts(process):
            finished.append(Cid.parse(fact["cid"]))
            if len(finished) == files:
                process.send_signal(signal.SIGKILL)
                break
        process.wait()

    content = Content(EmbeddedStore(tmp_path / "store"))

    assert_whole(EmbeddedStore(tmp_path / "store"))
    assert list((tmp_path / "store" / "staging").iterdir()) == []
    assert set(finished) <= content.store.pins()
    for seed, cid in enumerate(finished):
        data = b"".join(map(bytes, content.cat(ContentPath(cid))))
        assert data == random.Random(seed).randbytes(50_000)
    content.gc()
    for cid in content.store.pins():
        assert content.verify(ContentPath(cid)).faults == ()


def test_two_processes_write_while_a_third_collects(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    EmbeddedStore(tmp_path / "store")
    with (
        child("collect", store) as collector,
        child("add_some", store, "one", "25") as first,
        child("add_some", store, "two", "25") as second,
    ):
        added = [*facts(first), *facts(second)]
        assert [first.wait(), second.wait()] == [0, 0]
        collector.terminate()
        (done,) = facts(collector)
        assert collector.wait() == 0

    content = Content(EmbeddedStore(tmp_path / "store"))
    pinned = {Cid.parse(cid) for fact in added for cid in fact["pinned"]}
    assert content.store.pins() == pinned
    assert len(pinned) == 25 + 25 + 25
    for cid in pinned:
        assert content.verify(ContentPath(cid)).faults == ()
        assert content.stat(ContentPath(cid)).size == 30_000
    assert done["rounds"] > 0
    assert_whole(EmbeddedStore(tmp_path / "store"))
    content.gc()
    assert not any(content.store.has(Cid.parse(fact["loose"])) for fact in added)


@pytest.mark.parametrize("how", ["tmpfs", "limit"])
def test_a_full_disk_is_said_so_and_costs_nothing(tmp_path: Path, how: str) -> None:
    """A small file system of its own where we may mount one; elsewhere a limit on file sizes."""
    before: tuple[str, ...] = ()
    if how == "tmpfs":
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            pytest.skip("only root may mount a file system")
        before = ("unshare", "--mount", "--propagation", "private")

    fact = outcome("fill_a_disk", str(tmp_path / "disk"), how, before=before)

    if "skip" in fact:
        pytest.skip(fact["skip"])
    assert fact["said"].startswith(f"store {tmp_path / 'disk' / 'store'}: ")
    if how == "tmpfs":
        assert "No space left on device: free some space" in fact["said"]
    assert (fact["staged"], fact["before"]) == (0, 1)
    assert fact["kept"]
    assert (fact["pins"], fact["collected"]) == (2, 0)


def test_memory_stays_bounded_while_much_goes_by(tmp_path: Path) -> None:
    fact = outcome("stream_much", str(tmp_path / "store"), "300")

    assert fact["same"]
    assert fact["peak_mb"] < 200
