"""The trained model as files that people use: `.keras`, and TensorBoard's events."""

import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from math import copysign, inf
from pathlib import Path

from dapp.posting.engine import ask_engine, engine_turn, require_sandbox
from dapp.schemas.runs import MetricsView
from dapp.services import Services
from dapp.settings import scratch_folder
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import InvalidCidError
from trainyard.datasets.tfrecord import frame
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.model_files import ExportJob
from trainyard.engine.plain_files import open_plain, written

_MODULE = "trainyard.engine.model_files"
_COPY_BYTES = 1 << 20


def model_file(services: Services, run: ClaimedRun) -> tuple[Path, Cid]:
    """The `.keras` file of the last state, made in the sandbox at first and kept."""
    kept = _place_of(services, run)
    if not kept.is_file():
        _export(services, run, kept)
    return kept, _named(services, kept)


def model_cid(services: Services, run: ClaimedRun) -> Cid | None:
    """That of the `.keras` file, if it was made already."""
    kept = _place_of(services, run)
    return _noted(services, kept) if kept.is_file() else None


def _place_of(services: Services, run: ClaimedRun) -> Path:
    # INVARIANT: the model is a function of both. A state alone is of no one architecture, and a
    # stranger's task may end in a copy of somebody else's.
    digest, state = run.published.manifest.digest.hex(), run.published.states[run.last]
    return services.settings.exports / f"{digest}-{state}.keras"


def _named(services: Services, kept: Path) -> Cid:
    """The file's CID, noted beside it when it was put into the store."""
    noted = _noted(services, kept)
    if noted is not None:
        return noted
    cid = services.content.add(kept).cid
    with written(_note_of(kept)) as file:
        file.write(str(cid).encode())
    return cid


def _noted(services: Services, kept: Path) -> Cid | None:
    with suppress(FileNotFoundError, InvalidCidError):
        cid = Cid.parse(_note_of(kept).read_text())
        if services.stored.store.has(cid):
            return cid
    return None


def _note_of(kept: Path) -> Path:
    return kept.with_suffix(".cid")


def _export(services: Services, run: ClaimedRun, target: Path) -> None:
    require_sandbox(services)
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(services.settings, "export-") as name:
        folder = Path(name).resolve()
        manifest, out = folder / "manifest.json", folder / "out"
        manifest.write_bytes(run.published.manifest.canonical)
        out.mkdir()
        # Checked against the trace on its way here.
        state = services.reach.get(lambda content: fetch_state(content, run, folder))
        job = ExportJob(manifest=manifest, state=state, target=out / "model.keras")
        with engine_turn(services):
            # Who had the turn before may have made it.
            if not target.is_file():
                readable = [manifest, state]
                ask_engine(services, _MODULE, job, folder, readable=readable, writable=[out])
                _take(job.target, target)


def _take(made: Path, target: Path) -> None:
    """What the sandbox made, if it is a plain file; whatever else lies there leads elsewhere."""
    with open_plain(made) as source, written(target) as file:
        shutil.copyfileobj(source, file, _COPY_BYTES)


def fetch_state(content: Content, run: ClaimedRun, folder: Path) -> Path:
    published = type(run.published)(
        content,
        run.published.result,
        run.published.manifest,
        run.published.states,
        folder,
        None,
    )
    return published.state(run.last)


def event_file(view: MetricsView) -> Iterator[bytes]:
    """TensorBoard's own file of all series, one tag for each worker and name."""
    yield frame(_event(0.0, 0, _string(3, "brain.Event:2")))
    points = [
        (at, step, f"worker {series.slot}/{series.name}", value)
        for series in view.series
        for step, at, value in zip(series.steps, series.times, series.values, strict=True)
    ]
    for at, step, tag, value in sorted(points):
        summary = _bytes(1, _string(1, tag) + b"\x15" + _single(value))
        yield frame(_event(at, step, _bytes(5, summary)))


def _event(at: float, step: int, what: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step) + what


def _single(value: float) -> bytes:
    """In 32 bits, as TensorBoard has it; what is too large for them is infinite there."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", copysign(inf, value))


def _bytes(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _string(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _varint(number: int) -> bytes:
    found = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        found.append(low | (0x80 if number else 0))
        if not number:
            return bytes(found)
