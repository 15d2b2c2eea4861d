"""An auditor of one task that is started before it is known which segments it is to compute.

TensorFlow takes longer to start than most segments to compute. So whoever is about to need an
auditor starts it ahead: it builds the network of the manifest, computes its first state, and waits.
It is used once, for the task that it was started for, and then ended.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from trainyard.engine.auditing import (
    Recomputed,
    check_segments,
    lay_out,
    recomputed,
    unless_failed,
)
from trainyard.engine.auditor import AuditJob, Inputs, Told
from trainyard.engine.classes import require_class
from trainyard.engine.confining import Confined, Confinement, reach_of
from trainyard.engine.errors import RunError
from trainyard.engine.launching import watched_lines
from trainyard.engine.logs import open_own
from trainyard.engine.material import Files
from trainyard.protocol.manifest import Manifest


class Standby:
    """The auditor, from outside."""

    def __init__(self, manifest: Manifest, child: Confined, log: Path) -> None:
        self._manifest, self._child, self._log = manifest, child, log

    def look(self) -> None:
        """To be called now and then while it waits: nobody else sees which limit it is over."""
        breach = self._child.breach()
        if breach is not None:
            self._child.kill()
            raise RunError(breach)

    def recompute(self, segments: Mapping[int, Inputs]) -> Recomputed:
        """Compute segments, once. Their inputs lie in the folders that it was started with."""
        check_segments(self._manifest, segments)
        told = Told(segments={number: _absolute(one) for number, one in segments.items()})
        if self._child.stdin is None:
            raise TypeError("an auditor that waits is told by a pipe")
        # One that has ended says why in what there is to be read.
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(told.model_dump_json().encode() + b"\n")
            self._child.stdin.close()
        # The first state and the answers: nobody waits until TensorFlow has ended too.
        said = islice(unless_failed(watched_lines(self._child, self._log)), 1 + len(segments))
        found = recomputed(said)
        if {one.segment for one in found.answers} != set(segments):
            raise RunError("the auditor that stood by ended without an answer")
        return found


@contextlib.contextmanager
def standing_by(
    manifest: Manifest, files: Files, confinement: Confinement, folders: Sequence[Path]
) -> Iterator[Standby]:
    """Start it in a sandbox, where it reads the task's files and what will be in `folders`."""
    # In a sandbox nobody could find it out.
    require_class(manifest)
    with contextlib.ExitStack() as parts:
        name = parts.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-standby-"))
        folder = Path(name)
        request = AuditJob(job=lay_out(manifest, files, folder), segments={}, waits=True)
        (folder / "audit.json").write_text(request.model_dump_json())
        reach = reach_of(request.job, readable=folders)
        child = parts.enter_context(
            confinement.running(
                [sys.executable, "-m", "trainyard.engine.auditor", str(folder / "audit.json")],
                readable=reach.readable,
                writable=reach.writable,
                environment=reach.environment,
                log=parts.enter_context(open_own(folder / "log")),
                is_told=True,
            )
        )
        yield Standby(manifest, child, folder / "log")


def _absolute(inputs: Inputs) -> Inputs:
    """By the names that the folders have in the sandbox: links in them are followed only there."""
    return inputs.model_copy(
        update={
            "states": tuple(path.absolute() for path in inputs.states),
            "deltas": tuple(path.absolute() for path in inputs.deltas),
        }
    )
