"""A store, a gateway beside it, and gates and TensorFlow programs over them."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.iptf.client import GateClient
from trainyard.iptf.launching import GateProcess
from trainyard.iptf.wire import Message, Op

# TensorFlow takes its time to start on a busy machine.
PROGRAM_S = 300


@dataclass(frozen=True)
class World:
    """Folders of one test, and the environment that leads every gate and program to them."""

    folder: Path
    gateways: str = ""
    cache_bytes: int = 1 << 30
    timeout_s: float = 30.0
    more: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> EmbeddedStore:
        return EmbeddedStore(self.folder / "store")

    @property
    def content(self) -> Content:
        return Content(self.store)

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TRAINYARD_STORE": str(self.folder / "store"),
            "TRAINYARD_GATEWAYS": self.gateways,
            "TRAINYARD_TIMEOUT_S": str(self.timeout_s),
            "IPTF_CACHE": str(self.cache),
            "IPTF_CACHE_BYTES": str(self.cache_bytes),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **self.more,
        }

    def add(self, files: dict[str, bytes]) -> Cid:
        """Store files as one directory."""
        source = self.folder / f"source-{len(list(self.folder.iterdir()))}"
        for name, data in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(data)
        return self.content.add(source).cid

    @contextmanager
    def gate(self) -> Iterator[GateProcess]:
        gate = GateProcess(self.environment)
        try:
            yield gate
        finally:
            gate.stop()

    def iptf(self, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run the `iptf` command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "trainyard.iptf", *arguments],
            env={**clean_environment(), **self.environment},
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_S,
            check=False,
        )

    def told(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """As `iptf`, which must succeed."""
        done = self.iptf(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def reflog(self, run: int) -> dict[str, dict[str, Any]]:
        """What a run read, by URI; of a file that it read twice the last."""
        listed = json.loads(self.told("reflog", "--run", str(run), "--json").stdout)
        return {read["uri"]: read for read in listed}

    def python(self, script: str) -> str:
        """Run a program that enables the plugin by itself; what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env={**clean_environment(), **self.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PROGRAM_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class OpenFile:
    """A file opened at a gate as the plugin does it."""

    client: GateClient
    handle: int
    size: int
    complete: bool
    uri: str
    cid: str
    fd: int

    @classmethod
    def at(cls, client: GateClient, uri: str) -> "OpenFile":
        fields, fd = client.ask_for_fd(Message(Op.OPEN).text(uri))
        assert fd is not None
        handle, size, complete, _ = fields.u64(), fields.u64(), bool(fields.u8()), fields.u8()
        return cls(client, handle, size, complete, uri, fields.text(), fd)

    def ensure(self, offset: int, length: int) -> tuple[int, bool]:
        fields = self.client.ask(Message(Op.ENSURE).u64(self.handle).u64(offset).u64(length))
        return fields.u64(), bool(fields.u8())

    def read(self, offset: int, length: int) -> bytes:
        self.ensure(offset, length)
        return os.pread(self.fd, length, offset)

    def close(self) -> None:
        self.report(release=True)
        os.close(self.fd)

    def report(self, *ranges: tuple[int, int], release: bool = False) -> None:
        """Tell the gate what was read."""
        close = Message(Op.CLOSE).u64(self.handle).u8(release).text(self.uri).text(self.cid)
        close.u64(sum(end - start for start, end in ranges)).u32(len(ranges))
        for start, end in ranges:
            close.u64(start).u64(end)
        self.client.tell(close)


def clean_environment() -> dict[str, str]:
    """This process's environment without the gate that it may have joined itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("IPTF_")}


def flip_byte(store: EmbeddedStore, cid: Cid, at: int = -1) -> None:
    """Damage a block of a store on disk."""
    name = cid.digest.hex()
    path = store.root / "blocks" / name[:2] / name
    block = bytearray(path.read_bytes())
    block[at] ^= 1
    path.chmod(0o600)
    path.write_bytes(block)


def remove_block(store: EmbeddedStore, cid: Cid) -> None:
    name = cid.digest.hex()
    (store.root / "blocks" / name[:2] / name).unlink()
