"""Where the code of strangers runs: a bubblewrap sandbox without keys, home, network or host.

A task sees the interpreter and its libraries, the files of its job, and nothing else. It has a lo
of its own, may write to the folders that it is given, and is gone with its first process. There is
no way to run a task without: where there is no sandbox there is an error that says how to get one.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from trainyard.engine.confining import Confined
from worker_agent import limiting
from worker_agent.cgroups import Group
from worker_agent.finding import SandboxError, SandboxReport, look, refuse_wide
from worker_agent.limits import Limits
from worker_agent.sandboxed import Sandboxed
from worker_agent.seccomp import open_filter

_NOBODY = "65534"
# Libraries and threads take addresses that they never use.
_SPARE_ADDRESSES = 4 << 30
_MOST_OPEN_FILES = 4096
_TRY_S = 30.0


def find_sandbox() -> SandboxReport:
    """What a sandbox here is made of, once one was tried; else an error that names the fix."""
    report = look()
    command = Sandbox(Limits(), report).command([sys.executable, "-c", "import worker_agent"])
    try:
        tried = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRY_S, env={}
        )
    except subprocess.TimeoutExpired as error:
        what = f"a sandbox is not there after {_TRY_S:.0f} s"
        raise SandboxError(what, "try again with less load") from error
    if tried.returncode == 0:
        return report
    said = (tried.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
    fix = (
        "allow user name spaces (sysctl user.max_user_namespaces=10000, and where there is such a "
        "setting kernel.apparmor_restrict_unprivileged_userns=0)"
    )
    raise SandboxError(f"bubblewrap cannot make a sandbox here ({said})", fix)


class Sandbox:
    """Runs commands with nothing but what they are given. One is enough for any number of them.

    None of them runs on after `until`, by the monotonic clock.
    """

    def __init__(
        self, limits: Limits, report: SandboxReport | None = None, *, until: float | None = None
    ) -> None:
        self.limits, self._until = limits, until
        self.report = find_sandbox() if report is None else report

    def command(
        self,
        argv: Sequence[str],
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        seccomp_fd: int | None = None,
    ) -> list[str]:
        """The command line that runs `argv` in a sandbox. Paths are absolute, and stay as they are.

        Folders to write to must exist; of what is to be read, the task itself says what is missing.
        """
        refuse_wide([*readable, *writable])
        folders = _outermost(writable)
        # INVARIANT: nothing in a folder that a task writes to is mounted by its own name. A task
        # could have left a link there, to a file of ours that its next start would then be shown.
        shown = [path for path in _outermost(readable) if not _is_in(path, folders)]
        variables = self._variables() | dict(environment or {})
        return [
            str(self.report.bwrap),
            *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
            *("--new-session", "--cap-drop", "ALL", "--hostname", "trainyard"),
            *("--uid", _NOBODY, "--gid", _NOBODY, "--clearenv"),
            *(part for item in variables.items() for part in ("--setenv", *item)),
            # As root, bubblewrap leaves /proc/sys as it is, and root's own files may be written.
            *("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"),
            *("--perms", "1777", "--size", str(self.limits.scratch_bytes), "--tmpfs", "/tmp"),  # noqa: S108
            *self.report.own_paths,
            *(part for path in shown for part in ("--ro-bind-try", str(path), str(path))),
            *(part for path in folders for part in ("--bind", str(path), str(path))),
            *("--remount-ro", "/", "--chdir", "/tmp"),  # noqa: S108
            *(() if seccomp_fd is None else ("--seccomp", str(seccomp_fd))),
            *("--", sys.executable, "-I", "-S", str(Path(limiting.__file__).absolute())),
            *self._settings(),
            *("--", *argv),
        ]

    @contextlib.contextmanager
    def running(
        self,
        argv: Sequence[str],
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | int | None = None,
        is_told: bool = False,
    ) -> Iterator[Confined]:
        """Run `argv` in a sandbox. When this is left, all of its processes are gone."""
        limits = self._limits_now()
        with contextlib.ExitStack() as stack:
            group = None
            if self.report.tree.parents:
                group = Group(self.report.tree, limits.memory_bytes, limits.processes, limits.cores)
                stack.callback(group.remove)
            seccomp_fd = stack.enter_context(open_filter())
            process = Sandboxed(
                self.command(
                    argv,
                    readable=readable,
                    writable=writable,
                    environment=environment,
                    seccomp_fd=seccomp_fd,
                ),
                limits=limits,
                group=group,
                sums_memory=not self.report.groups_memory,
                folders=writable,
                stdin=subprocess.PIPE if is_told else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                # The first process of the sandbox shows what bubblewrap was started with.
                env={},
                pass_fds=(seccomp_fd,),
            )
            stack.callback(process.end)
            yield process

    def _limits_now(self) -> Limits:
        """What is started later has less time."""
        if self._until is None:
            return self.limits
        left_s = max(0.0, self._until - time.monotonic())
        wall_s = self.limits.wall_s
        return replace(self.limits, wall_s=left_s if wall_s is None else min(wall_s, left_s))

    def _variables(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": "/tmp",  # noqa: S108
            "TMPDIR": "/tmp",  # noqa: S108
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(self.report.import_path),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _settings(self) -> list[str]:
        limits = self.limits
        wanted = {"CORE": 0, "FSIZE": limits.disk_bytes, "NOFILE": _MOST_OPEN_FILES}
        if limits.cpu_s is not None:
            wanted["CPU"] = limits.cpu_s
        if not self.report.groups_memory:
            wanted["AS"] = limits.memory_bytes + _SPARE_ADDRESSES
        if not self.report.groups_processes:
            wanted["NPROC"] = limits.processes + 2
        return [f"{name}={limit}" for name, limit in wanted.items()]


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Each path once, and none that lies in another one of them."""
    found = sorted(set(paths))
    return [path for path in found if not _is_in(path, [one for one in found if one != path])]


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
