"""A run as content that can be served piece by piece, so that auditors compute and do not copy.

The name of a small state among content is its hash, which is what an auditor is asked for. So what
is served before the answers are in goes under a *seal*, a few bytes before the state, which changes
the name; and the blocks of segments that nobody asked for stay here. What is named but not served
tells nobody anything.
"""

import io
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, BinaryIO, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from trainyard.content.adding import add_path
from trainyard.content.build import build_directory, build_file
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.nodes import Built, Put
from trainyard.engine.auditing import deltas_named, inputs_in, sources_of
from trainyard.engine.journal import Journal
from trainyard.engine.publishing import laid_out
from trainyard.engine.scoring import is_scored
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.manifest.training import MOST_SEGMENTS
from trainyard.protocol.results import Result
from trainyard.protocol.trace import Trace

SEAL = b"trainyard sealed state/1\n"
INPUTS = "inputs.json"


_Hash: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Shown(BaseModel):
    """A state of the trace, and the proof that it is there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hash: _Hash
    proof: tuple[_Hash, ...] = Field(max_length=64)


class SegmentInputs(BaseModel):
    """All states that say what a segment is computed from; of those, the needed are served."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(default=1, ge=1, le=1)
    states: dict[int, Shown] = Field(max_length=MOST_SEGMENTS)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where blocks go: those that may be seen into the store, the others nowhere."""

    put: Put
    served: Collection[int]
    is_open: bool

    def of_segment(self, segment: int) -> Put:
        return self.put if segment in self.served else _nowhere


def seal(
    journal: Journal,
    content: Content,
    *,
    served: Collection[int] = (),
    is_open: bool = False,
    pinned: Callable[[Cid], None] = lambda cid: None,
) -> Result:
    """Name a finished run, and serve the evidence of segments, and all of it once it is open.

    To be called again with more; the result stays the same. `pinned` is told what is kept.
    """
    manifest = Manifest.parse(journal.manifest)
    trace = journal.trace
    # Workers of all classes may take part in what is scored, and all have to name the same run.
    names_class = not is_scored(manifest) or manifest.training.workers == 1
    with (
        laid_out(journal, manifest, names_class=names_class) as folder,
        content.store.batch() as batch,
    ):
        places = _Places(batch.put, served, is_open)
        run = add_path(folder, batch.put if is_open else _nowhere, None, lambda _: None)
        segments = {
            segment: _segment(journal, manifest, trace, segment, places.of_segment(segment))
            for segment in _proven(manifest, trace)
        }
        directory = list[Cid]()

        def put_leaf(cid: Cid, block: bytes) -> None:
            batch.put(cid, block)
            directory.append(Cid(Codec.RAW, cid.digest))

        evidence = build_directory(
            ((f"{segment:06}", built) for segment, built in segments.items()), put_leaf
        )
        result = Result(
            manifest=manifest.digest.hex(),
            root=trace.root.hex(),
            evidence=str(evidence.cid),
            run=str(run.cid),
        )
        document = Cid(Codec.RAW, result.digest)
        batch.put(document, result.canonical)
        # The directory of all segments is kept as bare bytes: most of what it names is not here.
        kept = [document, *directory, *(segments[one].cid for one in served if one in segments)]
        if is_open:
            kept.append(run.cid)
        for cid in kept:
            batch.pin(cid)
            pinned(cid)
    return result


def _proven(manifest: Manifest, trace: Trace) -> range:
    """The segments that anybody can compute again: none of a run that is scored."""
    return range(0 if is_scored(manifest) else trace.segments)


def _segment(journal: Journal, manifest: Manifest, trace: Trace, segment: int, put: Put) -> Built:
    hashes = _Noted([state.hex() for state in trace.states])
    numbers, _ = sources_of(manifest, segment, hashes)
    inputs = inputs_in(journal, manifest, segment)
    shown = SegmentInputs(
        states={
            number: Shown(
                hash=trace.states[number].hex(),
                proof=tuple(one.hex() for one in trace.proof(number)),
            )
            for number in sorted({*numbers, *hashes.asked})
        }
    )
    entries = {INPUTS: build_file(io.BytesIO(shown.model_dump_json().encode()), put)}
    names = deltas_named(manifest, segment, inputs.states)
    sealed = {
        **{f"state-{n}": path for n, path in zip(numbers, inputs.states, strict=True)},
        **{f"delta-{name}": path for name, path in zip(names, inputs.deltas, strict=True)},
    }
    for name, path in sealed.items():
        with _sealed(path) as stream:
            entries[name] = build_file(stream, put)
    return build_directory(sorted(entries.items()), put)


class _Noted(Sequence[str]):
    """Hashes that remember which of them were looked at: those the outcome depends on."""

    def __init__(self, hashes: Sequence[str]) -> None:
        self._hashes = hashes
        self.asked: set[int] = set()

    def __len__(self) -> int:
        return len(self._hashes)

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        self.asked.add(number)
        return self._hashes[number]


@contextmanager
def _sealed(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file:
        yield cast(BinaryIO, _Sealed(file))


class _Sealed(io.RawIOBase):
    """A file with the seal before it."""

    def __init__(self, file: BinaryIO) -> None:
        self._seal, self._file = io.BytesIO(SEAL), file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._seal.read(size)
        if size < 0 or len(data) < size:
            data += self._file.read(-1 if size < 0 else size - len(data))
        return data


def _nowhere(cid: Cid, block: bytes | memoryview) -> None:
    """Named, and not kept."""


def strip_seal(sealed: Path, target: Path) -> bool:
    """Write what is under the seal to `target`; False if there is no seal."""
    with sealed.open("rb") as source:
        if source.read(len(SEAL)) != SEAL:
            return False
        with TemporaryDirectory(dir=target.parent) as name, (Path(name) / "state").open("wb") as to:
            while data := source.read(1 << 20):
                to.write(data)
            os.replace(to.name, target)
    return True
