"""The trained model as files that people use: `.keras`, TensorBoard's events, a receipt."""

import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dapp.posting.engine import ask_engine, engine_turn, require_sandbox
from dapp.reading.task import Known
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
from trainyard.protocol.telling import task_of

_MODULE = "trainyard.engine.model_files"
_COPY_BYTES = 1 << 20


def model_file(services: Services, run: ClaimedRun) -> tuple[Path, Cid]:
    """The `.keras` file of the last state, made in the sandbox at first and kept."""
    state = run.published.states[run.last]
    kept = services.settings.exports / f"{state}.keras"
    if not kept.is_file():
        _export(services, run, kept)
    return kept, _named(services, kept)


def _named(services: Services, kept: Path) -> Cid:
    """The file's CID, noted beside it when it was put into the store."""
    note = kept.with_suffix(".cid")
    with suppress(FileNotFoundError, InvalidCidError):
        cid = Cid.parse(note.read_text())
        if services.stored.store.has(cid):
            return cid
    cid = services.content.add(kept).cid
    with written(note) as file:
        file.write(str(cid).encode())
    return cid


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
        summary = _bytes(1, _string(1, tag) + b"\x15" + struct.pack("<f", value))
        yield frame(_event(at, step, _bytes(5, summary)))


def receipt_of(known: Known, chain_id: int, market: str) -> dict[str, Any]:
    """What was trained, checked and paid; all of it can be checked by the transactions named."""
    task = known.task
    lead = task.slots[task.lead].claim
    credited: dict[str, int] = {}
    for one in known.events:
        if one.event.name == "Credited":
            who = one.event.args["account"]
            credited[who] = credited.get(who, 0) + one.event.args["amount"]
    return {
        "version": 1,
        "chain_id": chain_id,
        "market": market,
        "task": known.number,
        "requester": task.requester,
        "outcome": task.state.name.lower(),
        "failure": None if task.failure is None else task.failure.name.lower(),
        "manifest": f"0x{task.terms.manifest.hex()}",
        "class": f"0x{task.terms.env_class.hex()}",
        "result": None if lead is None else f"0x{lead.result.hex()}",
        "root": None if lead is None else f"0x{lead.root.hex()}",
        "workers": [slot.worker for slot in task.slots],
        "audits": [
            {
                "segment": seat.segment,
                "member": seat.member,
                "answer": f"0x{seat.answer.hex()}",
                "opened": f"0x{seat.opened.hex()}",
            }
            for seat in task.own_panel.seats
        ],
        "disputes": {
            str(segment): {"outcome": one.state.name.lower(), "truth": f"0x{one.truth.hex()}"}
            for segment, one in task.disputes.items()
        },
        "credited_wei": {who: str(wei) for who, wei in credited.items()},
        "transactions": list(
            dict.fromkeys(
                f"0x{one.transaction.hex()}"
                for one in known.events
                if task_of(one.event) == known.number
            )
        ),
    }


def _event(at: float, step: int, what: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step) + what


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
