"""How much a task may use of this machine, and the one sentence that says what it used too much of.

No I/O: what was seen comes in, a sentence comes out, which goes to whoever asked for the task.
"""

import signal
from dataclasses import dataclass

_SHELL_SIGNALS = 128
_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
# What programs say when a limit of the kernel's stops them; there is no other trace of it.
_NO_MEMORY = ("memoryerror", "bad_alloc", "cannot allocate memory", "out of memory")
_NO_PROCESS = ("resource temporarily unavailable", "can't start new thread")
_NO_FILE = ("file too large",)
_NO_SPACE = ("no space left on device",)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of all processes of one task together, where nothing else is said."""

    memory_bytes: int = 4 << 30
    # Of all folders that it writes to. A single file is held to it by the kernel, and the sum by
    # whoever looks now and then.
    disk_bytes: int = 20 << 30
    # Threads are counted, as the kernel does.
    # A leader in mode async has hundreds.
    processes: int = 1024
    # Of its /tmp, which is memory.
    scratch_bytes: int = 64 << 20
    # Kept by control groups alone; None for all that there are.
    cores: float | None = None
    # Of each process.
    cpu_s: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task's process ended, and what was seen of it."""

    # As `Popen` has it; bubblewrap says 128 + n for a task that signal n ended.
    status: int
    # The kernel ended a process for want of memory, or refused to start one.
    out_of_memory: bool = False
    out_of_processes: bool = False
    # The last line of its log.
    said: str = ""
    # What whoever looks now and then has found.
    breach: str | None = None


def signal_of(status: int) -> int | None:
    """The signal that ended a process, seen directly or through bubblewrap."""
    number = -status if status < 0 else status - _SHELL_SIGNALS
    return number if number in set(signal.Signals) else None


def explain(ending: Ending, limits: Limits) -> str | None:
    """Which limit ended a task; None if it was none of them."""
    if ending.breach is not None:
        return ending.breach
    if ending.status == 0:
        return None
    said = ending.said.lower()
    if ending.out_of_memory or any(word in said for word in _NO_MEMORY):
        return too_much_memory(limits)
    if signal_of(ending.status) == signal.SIGXCPU:
        return f"the task used more than {limits.cpu_s} s of processor time"
    if signal_of(ending.status) == signal.SIGXFSZ or any(word in said for word in _NO_FILE):
        return too_much_disk(limits)
    if ending.out_of_processes or any(word in said for word in _NO_PROCESS):
        return f"the task started more than {limits.processes} processes and threads"
    if any(word in said for word in _NO_SPACE):
        scratch = in_units(limits.scratch_bytes)
        return f"the task filled its {scratch} of temporary files, or the disk is full"
    return None


def too_much_memory(limits: Limits) -> str:
    return f"the task needed more than {in_units(limits.memory_bytes)} of memory"


def too_much_disk(limits: Limits) -> str:
    return f"the task wrote more than {in_units(limits.disk_bytes)} to disk"


def too_long(limits: Limits) -> str:
    return f"the task ran for more than {limits.wall_s:g} s"


def in_units(size: int) -> str:
    for name, unit in _UNITS:
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"
