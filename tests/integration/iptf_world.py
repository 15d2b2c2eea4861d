"""A store, a gateway beside it, and gates and TensorFlow programs over them."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.iptf.launching import GateProcess

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
