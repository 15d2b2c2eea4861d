"""What a test of the store has done in a process of its own: `python -m … <what> <store> …`.

Every child ends with its parent.
"""

import ctypes
import io
import json
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import StoreError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.limits import MIB
from trainyard.content.names import ContentPath

CHUNK = FixedChunker(4096)


class Noise(io.RawIOBase):
    """Megabytes that nobody has to keep: the same for the same seed."""

    def __init__(self, megabytes: int, seed: int = 0) -> None:
        self._left, self._random = megabytes, random.Random(seed)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if not self._rest and self._left:
            self._left -= 1
            self._rest = self._random.randbytes(MIB)
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def hold_a_batch(store: Path) -> None:
    """Put blocks into a batch and wait to be killed in the middle of it."""
    with EmbeddedStore(store).batch() as batch:
        for number in range(200):
            data = b"%d" % number * 500
            batch.put(Cid.of(Codec.RAW, data), data)
        say(ready=True)
        sys.stdin.read()


def add_without_end(store: Path) -> None:
    content = Content(EmbeddedStore(store))
    for seed in range(10_000):
        built = content.add(io.BytesIO(random.Random(seed).randbytes(50_000)), chunker=CHUNK)
        say(cid=str(built.cid))


def add_some(store: Path, seed: str, count: str) -> None:
    """Files of which every other one is also added by every other process."""
    content = Content(EmbeddedStore(store))
    for number in range(int(count)):
        own = random.Random(f"{seed} {number}").randbytes(30_000)
        shared = random.Random(number).randbytes(30_000)
        cids = [content.add(io.BytesIO(data), chunker=CHUNK).cid for data in (own, shared)]
        loose = content.add(io.BytesIO(own[:9000]), chunker=CHUNK, pin=False)
        say(pinned=[str(cid) for cid in cids], loose=str(loose.cid))


def collect(store: Path) -> None:
    """Collect until told to stop."""
    content = Content(EmbeddedStore(store))
    freed, rounds = 0, 0
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    while not told.is_set():
        freed += content.gc().blocks
        rounds += 1
    say(freed=freed, rounds=rounds)


def fill_a_disk(store: Path, how: str) -> None:
    """Add to a disk that has room for little."""
    if how == "tmpfs":
        store.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(store)]
        if subprocess.run(mount, capture_output=True).returncode:
            say(skip="a file system cannot be mounted here")
            return
    content = Content(EmbeddedStore(store / "store"))
    small = content.add(io.BytesIO(b"small" * 1000)).cid
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        content.add(Noise(20))  # type: ignore[arg-type]
        said = "nothing"
    except StoreError as error:
        said = str(error)
    staged = len(list((store / "store" / "staging").iterdir()))
    before = content.store.usage().blocks
    again = content.add(io.BytesIO(b"again" * 1000)).cid
    read = [b"".join(map(bytes, content.cat(ContentPath(cid)))) for cid in (small, again)]
    say(
        said=said,
        staged=staged,
        before=before,
        kept=read == [b"small" * 1000, b"again" * 1000],
        pins=len(content.store.pins()),
        collected=content.gc().blocks,
    )


def peak_rss_mb() -> int:
    """Not `ru_maxrss`, which counts what the parent had in memory when it forked."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if "VmHWM" in line)


def stream_much(store: Path, megabytes: str) -> None:
    """Add, read back, and read over a gateway, all as streams."""
    content = Content(EmbeddedStore(store))
    cid = content.add(Noise(int(megabytes))).cid  # type: ignore[arg-type]
    expected, same = Noise(int(megabytes)), True

    def compare(pieces: Iterable[bytes | memoryview]) -> None:
        nonlocal same
        for piece in pieces:
            data = bytes(piece)
            while data:
                part = expected.read(len(data))
                same = same and data.startswith(part) and bool(part)
                data = data[len(part) :] if part else b""

    compare(content.cat(ContentPath(cid)))
    expected = Noise(int(megabytes))
    with GatewayServer(content) as server:
        source = GatewaySource(server.address)
        reader = Content(EmbeddedStore(store.with_name("reader")), [source])
        compare(reader.cat(ContentPath(cid)))
        reader.close()
        source.close()
    say(same=same, peak_mb=peak_rss_mb())


WHAT: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (hold_a_batch, add_without_end, add_some, collect, fill_a_disk, stream_much)
}

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # die with the parent
    WHAT[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
