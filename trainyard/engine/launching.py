"""A whole run on this machine, by one call: `run_local(manifest, files, folder)`.

TensorFlow is never imported here: it runs in processes of its own, which end with this one.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.addresses import Addresses
from trainyard.engine.confining import Confined, Confinement, Reach
from trainyard.engine.errors import RunError
from trainyard.engine.events import Event, Failed, read_event
from trainyard.engine.journal import RUN_LOCK, Journal, held
from trainyard.engine.logs import last_line, open_own
from trainyard.engine.material import Files
from trainyard.engine.offers import own_key
from trainyard.engine.signing import address_of
from trainyard.engine.starting import READ_BYTES, output_of, plain_status, status_of
from trainyard.engine.supervisor import DEFAULT_STALL_S, Jobs
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest

# The workers of a run have a network of their own, where every port is free.
_FIRST_PORT = 20_000
_MANIFEST, _JOBS, _PEERS = "manifest.json", "jobs.json", "peers"
_LOG = "supervisor.log"
EXCHANGE = "exchange"
_END_S = 10.0
_LOOK_S = 1.0
# Of a stranger in a sandbox, who may say anything at all.
_LONGEST_LINE = 1 << 20
_KEPT = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "TERM", "TMPDIR", "USER", "VIRTUAL_ENV"})
_KEPT_PREFIXES = ("LC_", "PYTHON", "TRAINYARD_", "XDG_")


def run_local(
    manifest: Manifest,
    files: Files,
    folder: Path,
    on_event: Callable[[Event], None] | None = None,
    *,
    deadline_s: float | None = None,
    stall_s: float = DEFAULT_STALL_S,
) -> Journal:
    """Run all workers of the manifest here, or go on with the run that `folder` holds.

    Returns the journal of the run. If this process is killed, the same call goes on from the last
    finished segment. In mode rounds, `deadline_s` after one worker is done with a round those that
    are not are left out of it; without, all are waited for that are not lost. Who says nothing for
    `stall_s` is started anew; in mode sync with all others, and in mode async all are if the leader
    says nothing.
    """
    folder = folder.resolve()
    with held(folder, RUN_LOCK):
        Journal.open(folder, manifest.canonical)
        lay_out = _async_jobs if manifest.training.mode == "async" else _jobs
        jobs = lay_out(manifest, files, folder)
        run = folder if manifest.training.mode == "rounds" else None
        _run(Jobs(jobs=jobs, run=run, deadline_s=deadline_s, stall_s=stall_s), folder, on_event)
    journal = Journal.read(folder)
    if len(journal.entries) != manifest.plan.segments + 1:
        raise RunError(
            f"the run ended after {len(journal.entries) - 1} of {manifest.plan.segments} segments; "
            "run it again to go on"
        )
    return journal


def _run(jobs: Jobs, folder: Path, on_event: Callable[[Event], None] | None) -> None:
    path = folder / _JOBS
    path.write_text(jobs.model_dump_json())
    with processes("trainyard.engine.supervisor", path, folder / _LOG) as lines:
        for line in lines:
            event = read_event(line)
            if on_event is not None:
                on_event(event)
            if isinstance(event, Failed) and not event.lost_peer:
                raise RunError(event.reason)


@contextlib.contextmanager
def processes(module: str, job: Path, log: Path) -> Iterator[Iterator[bytes]]:
    """Run a module of the engine with its job, and give what it says line by line."""
    with open_own(log) as errors:
        child = subprocess.Popen(
            _command(module, job),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            preexec_fn=dying_with_parent(),
            env=_plain_environment(),
            # Ctrl-C is for this process, which then ends its child in order.
            start_new_session=True,
        )
    try:
        yield _lines(child, log)
    finally:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if child.stdout is not None:
            child.stdout.close()


@contextlib.contextmanager
def confined_processes(
    module: str, job: Path, log: Path, confinement: Confinement, reach: Reach
) -> Iterator[Iterator[bytes]]:
    """The same in a sandbox. A limit that it goes over is an error that says which."""
    with (
        open_own(log) as errors,
        confinement.running(
            _command(module, job),
            readable=reach.readable,
            writable=reach.writable,
            environment=reach.environment,
            log=errors,
        ) as child,
    ):
        yield watched_lines(child, log)


def _command(module: str, job: Path) -> list[str]:
    return [sys.executable, "-m", module, str(job)]


def _plain_environment() -> dict[str, str]:
    """Of what the user has set only what cannot change a bit.

    TensorFlow, its libraries and the C library's loader take switches from the environment.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }


def _lines(child: "subprocess.Popen[bytes]", log: Path) -> Iterator[bytes]:
    yield from output_of(child)
    _require_success(child.wait(), log)


def watched_lines(child: Confined, log: Path) -> Iterator[bytes]:
    """What a process in a sandbox says; a limit that it goes over is an error that says which."""
    output = output_of(child)
    unfinished, look_at = b"", time.monotonic()
    while True:
        if time.monotonic() >= look_at:
            breach = child.breach()
            if breach is not None:
                raise RunError(breach)
            look_at = time.monotonic() + _LOOK_S
        if not select.select([output], [], [], _LOOK_S)[0]:
            continue
        data = os.read(output.fileno(), READ_BYTES)
        if not data:
            break
        *lines, unfinished = (unfinished + data).split(b"\n")
        if len(unfinished) > _LONGEST_LINE:
            raise RunError("the process of the run said what no such process says")
        yield from lines
    status = status_of(child)
    reason = child.reason(status, last_line(log))
    if reason is not None:
        raise RunError(reason)
    _require_success(plain_status(status), log)


def _require_success(status: int, log: Path) -> None:
    if status == 0:
        return
    ending = f"was killed by {signal.Signals(-status).name}" if status < 0 else "failed"
    raise RunError(
        f"the process of the run {ending}; see {log}: {last_line(log) or 'it says nothing'}"
    )


def _jobs(manifest: Manifest, files: Files, folder: Path) -> tuple[Job, ...]:
    workers = manifest.training.workers
    rounds = manifest.training.mode == "rounds"
    peers: tuple[str, ...] = ()
    if workers > 1 and not rounds:
        peers = tuple(f"127.0.0.1:{_FIRST_PORT + slot}" for slot in range(workers))
    signers: tuple[str, ...] = ()
    if rounds:
        own = [folder / _PEERS / str(slot) for slot in range(workers)]
        signers = tuple(address_of(own_key(one)) for one in own)
    return tuple(
        Job(
            manifest=folder / _MANIFEST,
            folder=folder if slot == 0 and not rounds else folder / _PEERS / str(slot),
            train=files.train,
            validation=files.validation,
            # Any worker of rounds may be the one that is there at the end.
            test=files.test if slot == 0 or rounds else None,
            initial_state=files.initial_state,
            slot=slot,
            peers=peers,
            exchange=folder / EXCHANGE if rounds else None,
            signers=signers,
        )
        for slot in range(workers)
    )


def _async_jobs(manifest: Manifest, files: Files, folder: Path) -> tuple[Job, ...]:
    """Those of the workers, in the order of slots, and then that of who leads them."""
    workers = manifest.training.workers
    chief, weights, *rest = (f"127.0.0.1:{_FIRST_PORT + number}" for number in range(workers + 2))
    leader = Job(
        manifest=folder / _MANIFEST,
        folder=folder,
        train=files.train,
        validation=files.validation,
        test=files.test,
        initial_state=files.initial_state,
        cluster=Addresses(chief=chief, weights=weights, workers=tuple(rest)),
        leads=True,
    )
    crew = [
        leader.model_copy(
            update={"folder": folder / _PEERS / str(slot), "slot": slot, "leads": False}
        )
        for slot in range(workers)
    ]
    return (*crew, leader)
