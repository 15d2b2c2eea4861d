"""One agent per key on a machine, and the same journal for a key every time.

What an agent signed is in its journal alone. A second agent, or one with another journal, would not
know of it and might send twice: it is refused.
"""

import errno
import fcntl
import json
import os
import pwd
import secrets
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainyard.content.disk import write_durably
from trainyard.protocol.errors import PermanentError
from worker_agent.settings import Home

_ID_FILE = "journal.id"
# In the folder of the key, for any other agent with it, and in the agent's own: a service may keep
# its state elsewhere than whoever types a command. These say who it is; that two of different homes
# and states do not both run, a name sees to that all of the machine shares.
_LOCK = "lock"
# Somebody who only looks holds the lock for a moment.
_TAKE_S = 0.5
# What a socket tells of whoever listens at it: process, user and group.
_CREDENTIALS = struct.Struct("3i")
_POLL_S = 0.02


class KeyInUseError(PermanentError):
    """Another agent of this machine has the key."""


class JournalError(PermanentError):
    """The key was used with a journal that is not this one."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The agent that has a key: zero or nothing is what cannot be known of it from here."""

    pid: int
    home: str = ""
    user: str = ""

    def __str__(self) -> str:
        which = f"with pid {self.pid}" if self.pid else "whose pid is not known"
        of = f" of the user {self.user}" if self.user else ""
        where = f"in {self.home}" if self.home else "in a folder that is not known here"
        return f"the agent {which}{of} {where}"

    def command(self, words: str) -> str:
        """What to type, so that it is this agent that is told."""
        if self.home:
            return f"'{words} --home {self.home}'"
        return f"'{words}' as {self.user or 'the user whose agent it is'}, with the --home it has"


def key_folder(address: str) -> Path:
    """What this machine remembers of a key, wherever the agent's folder is."""
    state = os.environ.get("XDG_STATE_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return base / "trainyard" / "keys" / address.lower()


@contextmanager
def held_key(
    address: str,
    home: Home,
    *,
    new_journal: bool = False,
    count_sent: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Have the key for as long as the block lasts, or the process, and the right journal with it.

    `new_journal` is the operator's word that nothing of the old journal is under way. A key of
    which this machine knows nothing may have been used on another one: `count_sent` is asked how
    many transactions it has sent.
    """
    folder = key_folder(address)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        _locked(home.folder / _LOCK, address, home),
        _locked(folder / _LOCK, address, home),
        _announced(address),
    ):
        record = folder / "journal.json"
        if not new_journal and count_sent is not None:
            _refuse_used(record, address, home, count_sent)
        _settle_journal(record, address, home, new_journal)
        yield


def holder_of(address: str, home: Home) -> Holder | None:
    """The agent that has the key or the folder now, if one does."""
    found = _holder(key_folder(address) / _LOCK) or _holder(home.folder / _LOCK)
    return found or _announcer(address)


def holder_in(home: Home) -> Holder | None:
    """The agent that has the folder now, if one does."""
    return _holder(home.folder / _LOCK)


def _holder(path: Path) -> Holder | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said(handle)
    finally:
        os.close(handle)
    return None


@contextmanager
def _locked(path: Path, address: str, home: Home) -> Iterator[None]:
    handle = _take(path, address)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(asdict(Holder(os.getpid(), str(home.folder)))).encode(), 0)
        yield
    finally:
        os.close(handle)


def _take(path: Path, address: str) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _TAKE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = _said(handle)
                os.close(handle)
                raise _in_use(address, holder) from None
            time.sleep(_POLL_S)


@contextmanager
def _announced(address: str) -> Iterator[None]:
    """Say to the whole machine that the key is in use, whoever keeps its state where.

    The name is in no folder, and the kernel takes it back when the process dies.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as announcing:
        try:
            announcing.bind(_name(address))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            holder = _announcer(address) or Holder(0)
            raise _in_use(address, holder) from None
        announcing.listen()
        yield


def _announcer(address: str) -> Holder | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(_name(address))
        except ConnectionRefusedError:
            return None
        except BlockingIOError:
            # It is there. But it takes no connection, and so many have looked that no more can.
            return Holder(0)
        told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(told)
        return Holder(pid, user=_name_of(uid))


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _name(address: str) -> str:
    return f"\0trainyard/{address.lower()}"


def _in_use(address: str, holder: Holder) -> KeyInUseError:
    return KeyInUseError(
        f"the key of {address} is in use by {holder}: end that one first, or give this one a key "
        "of its own"
    )


def _said(handle: int) -> Holder:
    with suppress(ValueError, TypeError):
        return Holder(**json.loads(os.pread(handle, 8192, 0)))
    # Between taking the lock and saying so there is a moment.
    return Holder(0)


def _refuse_used(record: Path, address: str, home: Home, count_sent: Callable[[], int]) -> None:
    """Refuse a key that was used elsewhere, and has come without its journal."""
    if _read(record) is not None or _id_in(home.folder) is not None:
        return
    count = count_sent()
    if count:
        raise JournalError(
            f"{address} has sent {count} transactions, and no journal of them is in {home.folder}: "
            "what was signed elsewhere might be sent twice. Bring chain.sqlite and journal.id of "
            "that agent here, or, if nothing of it is under way any more, say --new-journal"
        )


def _settle_journal(record: Path, address: str, home: Home, new_journal: bool) -> None:
    known, here = _read(record), _id_in(home.folder)
    if known is not None and not new_journal:
        _compare(known, here, address, home)
    if here is None or new_journal:
        here = secrets.token_hex(16)
        write_durably(home.folder / _ID_FILE, here.encode())
    # There from now on, if empty: should it be missing later, it was lost.
    home.chain_store.touch(mode=0o600)
    ours = {"id": here, "folder": str(home.folder.resolve())}
    if known != ours:
        write_durably(record, json.dumps(ours).encode())


def _compare(known: dict[str, Any], here: str | None, address: str, home: Home) -> None:
    """Refuse another journal than the one that the key was used with."""
    before, now = str(known["folder"]), str(home.folder.resolve())
    if here != known["id"]:
        why = f"{address} was used with the journal in {before}, which is not the one in {now}"
    elif not home.chain_store.exists():
        why = f"{address} was used with the journal {home.chain_store}, which is missing"
    elif before != now and _id_in(Path(before)) == here:
        why = f"{now} is a copy of {before}, with which {address} was used"
    else:
        return
    raise JournalError(
        f"{why}: what was signed there might be sent twice. Bring that journal back, or, if "
        "nothing of it is under way any more, say --new-journal"
    )


def _read(record: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(record.read_text())
        return {"id": str(found["id"]), "folder": str(found["folder"])}
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise JournalError(
            f"{record} is damaged, so nobody knows which journal the key was used with: if none is "
            "under way, remove it"
        ) from error


def _id_in(folder: Path) -> str | None:
    try:
        return (folder / _ID_FILE).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
