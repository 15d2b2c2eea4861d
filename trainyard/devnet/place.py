"""The folder of a devnet: what lies where, and who holds it.

Whoever runs the devnet holds a lock on the folder for as long as it lives, and the kernel takes it
back when that process ends, however it ends. So a number in a file is believed only while the lock
is held: a process that has the number later on is never mistaken for ours.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainyard.devnet.errors import AlreadyRunningError, DevnetError

_TAKE_S = 0.5
_POLL_S = 0.02
# All that is removed when a devnet is forgotten: the folder may be somebody's who put more there.
_OURS = (
    *("agents", "chain", "content", "dapp", "kubo"),
    *("chain.log", "dapp.log", "clock_ahead_s", "devnet.json", "mnemonic", "running.json"),
)


def default_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "trainyard" / "devnet"


@dataclass(frozen=True, slots=True)
class Place:
    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def record(self) -> Path:
        return self.folder / "devnet.json"

    @property
    def running(self) -> Path:
        """What runs, and where: there only while it does."""
        return self.folder / "running.json"

    @property
    def mnemonic(self) -> Path:
        return self.folder / "mnemonic"

    @property
    def clock(self) -> Path:
        """By how much the chain's clock was put forward."""
        return self.folder / "clock_ahead_s"

    @property
    def log(self) -> Path:
        return self.folder / "devnet.log"

    @property
    def chain_log(self) -> Path:
        return self.folder / "chain.log"

    @property
    def chain(self) -> Path:
        return self.folder / "chain"

    @property
    def content(self) -> Path:
        return self.folder / "content"

    @property
    def kubo(self) -> Path:
        return self.folder / "kubo"

    @property
    def dapp(self) -> Path:
        return self.folder / "dapp"

    @property
    def dapp_log(self) -> Path:
        return self.folder / "dapp.log"

    def agent(self, name: str) -> Path:
        return self.folder / "agents" / name

    def make(self) -> None:
        """The folder, for its owner's eyes only: the keys of all accounts are in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.lock.exists() and any(self.folder.iterdir()):
            raise DevnetError(
                f"{self.folder} is not empty and no devnet's: name another folder with --folder"
            )
        self.folder.chmod(0o700)

    def holder(self) -> int | None:
        """The process that runs the devnet, if one does."""
        try:
            handle = os.open(self.lock, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.read(handle, 32).decode(errors="replace")
            # Between taking the lock and saying so there is a moment.
            return int(said) if said.isdigit() else 0
        finally:
            os.close(handle)
        return None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder; nobody else can run a devnet in it meanwhile."""
        self.make()
        handle = self._take()
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)

    def _take(self) -> int:
        deadline = time.monotonic() + _TAKE_S
        while True:
            handle = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Else it was removed by who held it before us.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), self.lock.stat()):
                        return handle
            except BlockingIOError:
                # Perhaps only by somebody who looks whether it is held.
                if time.monotonic() > deadline:
                    os.close(handle)
                    raise AlreadyRunningError(
                        f"a devnet runs in {self.folder} already: "
                        "'trainyard devnet status' shows it"
                    ) from None
                time.sleep(_POLL_S)
            os.close(handle)

    def forget(self) -> None:
        """Remove all that a devnet keeps. To be called by who holds it."""
        for name in _OURS:
            entry = self.folder / name
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)
