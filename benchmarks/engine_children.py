"""The processes that `benchmarks.engine` sets against each other: each takes a turn when told to.

    python -m benchmarks.engine_children ours|fit MANIFEST RECORDS SEGMENTS

A line on its input is a turn of so many segments; it answers with a line of JSON.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State
from trainyard.engine.writing import Writer
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.training import Training


class Turn(BaseModel):
    """What a segment took, on average. Those of `fit` have no trace, and are not replayed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float
    trace_s: float = 0.0
    replay_s: float = 0.0


def main() -> None:
    kind, path, records, segments = sys.argv[1], *map(Path, sys.argv[2:4]), int(sys.argv[4])
    manifest = Manifest.parse(path.read_bytes())
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-", dir=records) as name:
        if kind == "fit":
            turn = _fit(manifest, records, segments)
        else:
            turn = _ours(manifest, records, Path(name), segments)
        # The first one of each makes its functions.
        turn()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(turn().model_dump_json(), flush=True)


def _ours(manifest: Manifest, records: Path, folder: Path, segments: int) -> Callable[[], Turn]:
    """The engine as a worker runs it: a segment, its state's hash, and both on disk."""
    from trainyard.engine import runtime

    runtime.start(manifest.training.threads)

    from trainyard.engine.data import open_folder
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Training

    data = open_folder(manifest.data.train, records)
    training = Training(manifest, build(manifest), Material(data))
    journal = Journal.open(folder, manifest.canonical)
    state = training.start()
    journal.append(_entry(0, state), state)

    def turn() -> Turn:
        nonlocal state
        trace_s, before, written_s = 0.0, state, [0.0]
        began = time.perf_counter()
        with Writer(journal, lambda _: written_s.append(time.thread_time())) as writer:
            for segment in range(len(journal.entries) - 1, len(journal.entries) - 1 + segments):
                outcome = training.run(segment, state)
                before, state = state, outcome.state
                trained = time.perf_counter()
                writer.append(partial(_entry, segment + 1, state), state)
                trace_s += outcome.trace_s + time.perf_counter() - trained
        ended = time.perf_counter()
        # What training waits for, and what the writer takes of its cores meanwhile. That the last
        # state is waited for is a matter of a run, not of a segment; it is in `seconds`.
        trace_s += written_s[-1] / manifest.training.threads
        return Turn(
            seconds=(ended - began) / segments,
            trace_s=trace_s / segments,
            replay_s=_replay(training, segment, before, state.hash.hex()),
        )

    return turn


def _entry(number: int, state: State) -> Entry:
    return Entry(number=number, state=state.hash.hex(), step=int(state.tensors["run/step"]))


def _replay(training: "Training", segment: int, before: State, digest: str) -> float:
    """What an auditor does for a segment, in a process that has computed one before."""
    data = b"".join(before.parts())
    began = time.perf_counter()
    found = training.run(segment, State.decode(data, "the state before")).state.hash.hex()
    seconds = time.perf_counter() - began
    if found != digest:
        raise RuntimeError(f"segment {segment} came out differently")
    return seconds


def _fit(manifest: Manifest, records: Path, segments: int) -> Callable[[], Turn]:
    """Keras as it is, with the same kernels and as many threads, but free in what it orders."""
    import os

    os.environ.update(TF_ENABLE_ONEDNN_OPTS="1", TF_CPP_MIN_LOG_LEVEL="2")
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(manifest.training.threads)

    from trainyard.engine.program import build

    program = build(manifest)
    program.model.compile(
        optimizer=program.optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    batch = manifest.training.batch
    steps = manifest.training.steps_per_segment * segments
    taken = np.arange(batch * steps) % manifest.data.train.records
    source = manifest.data.train
    images, labels = (
        np.load(records / f"{name}.npy")[taken] for name in (source.inputs[0], source.target)
    )

    def turn() -> Turn:
        began = time.perf_counter()
        program.model.fit(images, labels, batch_size=batch, epochs=1, verbose=0)
        return Turn(seconds=(time.perf_counter() - began) / segments)

    return turn


if __name__ == "__main__":
    main()
