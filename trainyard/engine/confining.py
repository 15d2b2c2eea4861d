"""The port by which the engine's children run in a sandbox that somebody else provides."""

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trainyard.engine.auditor import AuditJob
    from trainyard.engine.worker import Job


class Confined(subprocess.Popen[bytes]):
    """A child in a sandbox. With this process all others in there end."""

    def breach(self) -> str | None:
        """Which limit it is over, in one sentence. To be asked now and then; it is not ended."""
        raise NotImplementedError

    def reason(self, status: int, said: str = "") -> str | None:
        """Which limit ended it, in one sentence, by its status and its last words; None for none.

        To be asked before the sandbox is left.
        """
        raise NotImplementedError


class Confinement(Protocol):
    """Runs commands such that they reach nothing but what is named here."""

    def running(
        self,
        argv: Sequence[str],
        *,
        readable: Sequence[Path],
        writable: Sequence[Path],
        environment: Mapping[str, str],
        log: IO[bytes],
        is_told: bool = False,
    ) -> AbstractContextManager[Confined]:
        """Start it, its output in a pipe; when this is left nothing of it runs any more.

        Its input is a pipe too if it `is_told` something, and else empty.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reach:
    """All that a child has: what it reads, the folders that it writes to, and its variables."""

    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    environment: Mapping[str, str]


def reach_of(job: "Job", readable: Iterable[Path] = (), writable: Iterable[Path] = ()) -> Reach:
    """What a worker reaches by its job, and some more."""
    cache, environment = class_cache()
    reads = (job.manifest, job.train, job.validation, job.test, job.initial_state, cache, *readable)
    writes = (job.folder, job.exchange, *writable)
    return Reach(_named(reads), _named(writes), environment)


def reach_of_audit(audit: "AuditJob") -> Reach:
    """The files of an auditor: those of its job, and what segments are computed from."""
    inputs = [path for one in audit.segments.values() for path in (*one.states, *one.deltas)]
    scored = () if audit.scored is None else (audit.scored,)
    kept = () if audit.states is None else (audit.states,)
    return reach_of(audit.job, (*inputs, *scored), kept)


def absolute(job: "Job") -> "Job":
    """The same job for a process that is in another folder."""
    return job.model_copy(
        update={
            name: Path(os.path.abspath(path))
            for name, path in dict(job).items()
            if isinstance(path, Path)
        }
    )


def class_cache() -> tuple[Path, dict[str, str]]:
    """Where this machine's class is kept, and the variable by which a child finds it there.

    In a sandbox it can only be looked up: whoever starts a child has found it out before.
    """
    # It starts children itself.
    from trainyard.engine.classes import cache_folder

    folder = cache_folder()
    return folder, {"XDG_CACHE_HOME": str(folder.parents[1])}


def _named(paths: Iterable[Path | None]) -> tuple[Path, ...]:
    return tuple(Path(os.path.abspath(path)) for path in paths if path is not None)
