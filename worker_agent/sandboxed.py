"""A process in a sandbox, from outside: what it holds, which limit ended it, that it is gone."""

import contextlib
import json
import os
import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.confining import Confined
from worker_agent.cgroups import Group
from worker_agent.limits import (
    Ending,
    Limits,
    explain,
    too_long,
    too_much_disk,
    too_much_memory,
)
from worker_agent.watching import descendants_of, disk_of, memory_of

_END_S = 10.0


class Sandboxed(Confined):
    """Bubblewrap's own process, outside of the sandbox: with it, all others end."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        group: Group | None,
        sums_memory: bool,
        folders: Sequence[Path],
        **how: Any,
    ) -> None:
        self._limits, self._group, self._sums_memory = limits, group, sums_memory
        self._folders = folders
        self._began = time.monotonic()
        self._breach: str | None = None
        prepare = dying_with_parent()

        def join() -> None:
            prepare()
            if group is not None:
                group.join()

        reading, writing = os.pipe()
        try:
            told = (*how.pop("pass_fds"), writing)
            command = [command[0], "--info-fd", str(writing), *command[1:]]
            super().__init__(command, preexec_fn=join, pass_fds=told, **how)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._inside = self._find_inside(reading)

    def breach(self) -> str | None:
        if self._breach is None:
            self._breach = self._look()
        return self._breach

    def _look(self) -> str | None:
        limits = self._limits
        if limits.wall_s is not None and time.monotonic() - self._began > limits.wall_s:
            return too_long(limits)
        pids = descendants_of(self.pid)
        if disk_of(self._folders, pids) > limits.disk_bytes:
            return too_much_disk(limits)
        if self._sums_memory and memory_of(pids) > limits.memory_bytes:
            return too_much_memory(limits)
        return None

    def reason(self, status: int, said: str = "") -> str | None:
        group = self._group
        ending = Ending(
            status=status,
            out_of_memory=group is not None and group.out_of_memory,
            out_of_processes=group is not None and group.out_of_processes,
            said=said,
            breach=self._breach,
        )
        return explain(ending, self._limits)

    def end(self) -> None:
        """Kill it, and wait until nothing of it is left."""
        self.kill()
        self.wait()
        if self._inside is not None:
            select.select([self._inside], [], [], _END_S)
            os.close(self._inside)
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.stdin.close()
        if self.stdout is not None:
            self.stdout.close()

    def _find_inside(self, info_fd: int) -> int | None:
        """A handle on the sandbox's first process, which ends after all others in there."""
        with open(info_fd, "rb") as info:
            said = info.read()
        try:
            return os.pidfd_open(json.loads(said)["child-pid"])
        except (ValueError, ProcessLookupError):
            # Bubblewrap failed, and says why in the log; or all is over already.
            return None
