"""A process that computes segments, by the engine or by Keras' own `fit`, when told to.

    python -m benchmarks.engine_children PART

A line on its input is a turn of so many segments; it answers with a line of JSON.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from benchmarks.turns import Part, Turn, answer, read_part, say_ready
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State
from trainyard.engine.worker import open_training
from trainyard.engine.writing import Writer
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.training import Training


def main() -> None:
    part = read_part()
    if part.job.core is not None:
        os.sched_setaffinity(0, {part.job.core})
    manifest = Manifest.parse(part.job.manifest.read_bytes())
    turn = (_fit if part.kind == "fit" else _ours)(manifest, part)
    # The first one of each makes its functions.
    turn()
    say_ready()
    for _ in sys.stdin:
        answer(turn())
    # Without goodbyes: TensorFlow would wait for a peer that is gone.
    os._exit(0)


def _ours(manifest: Manifest, part: Part) -> Callable[[], Turn]:
    """The engine as a worker runs it: a segment, its state's hash, and both on disk."""
    training = open_training(part.job, manifest)
    journal = Journal.open(part.job.folder, manifest.canonical)
    state = training.start()
    journal.append(_entry(0, state), state)

    def turn() -> Turn:
        nonlocal state
        before, spent = state, _Spent()
        began = time.perf_counter()
        with Writer(journal, spent.wrote) as writer:
            first = len(journal.entries) - 1
            for segment in range(first, first + part.segments):
                outcome = training.run(segment, state)
                before, state = state, outcome.state
                trained = time.perf_counter()
                writer.append(partial(spent.entry, segment + 1, state), state)
                spent.capturing_s += outcome.trace_s
                spent.handing_s += time.perf_counter() - trained
        ended = time.perf_counter()
        # What training waits for, and what the writer takes of its cores meanwhile. That the last
        # state is waited for is a matter of a run, not of a segment; it is in `seconds`.
        keeping_s = (
            spent.handing_s + (spent.writing_s - spent.hashing_s) / manifest.training.threads
        )
        trace_s = spent.capturing_s + spent.hashing_s / manifest.training.threads
        return Turn(
            seconds=(ended - began) / part.segments,
            trace_s=trace_s / part.segments,
            keep_s=keeping_s / part.segments,
            whole_s=(spent.capturing_s + spent.handing_s + spent.writing_s) / part.segments,
            replay_s=_replay(training, segment, before, state) if part.replays else 0.0,
        )

    return turn


class _Spent:
    """What went into states: capturing and handing them over, and by the writer's own clock."""

    def __init__(self) -> None:
        self.capturing_s = self.handing_s = self.hashing_s = self.writing_s = 0.0

    def entry(self, number: int, state: State) -> Entry:
        began = time.thread_time()
        entry = _entry(number, state)
        self.hashing_s += time.thread_time() - began
        return entry

    def wrote(self, _: Entry) -> None:
        # Each turn has a writer of its own, whose clock starts with it.
        self.writing_s = time.thread_time()


def _entry(number: int, state: State) -> Entry:
    return Entry(number=number, state=state.hash.hex(), step=int(state.tensors["run/step"]))


def _replay(training: "Training", segment: int, before: State, after: State) -> float:
    """What an auditor does for a segment, in a process that has computed one before."""
    data = b"".join(before.parts())
    began = time.perf_counter()
    found = training.run(segment, State.decode(data, "the state before")).state.hash.hex()
    seconds = time.perf_counter() - began
    if found != after.hash.hex():
        raise RuntimeError(f"segment {segment} came out differently")
    return seconds


def _fit(manifest: Manifest, part: Part) -> Callable[[], Turn]:
    """Keras as it is, with the same kernels and as many threads, but free in what it orders.

    That its `jit_compile` is "auto" leaves XLA out on a machine that has no more than processors.
    """
    os.environ.update(TF_ENABLE_ONEDNN_OPTS="1", TF_CPP_MIN_LOG_LEVEL="2")
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(manifest.training.threads)

    from trainyard.engine.program import build

    program = build(manifest)
    program.model.compile(
        optimizer=program.optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    source = manifest.data.train
    images, labels = (
        np.load(part.job.train / f"{name}.npy") for name in (source.inputs[0], source.target)
    )
    program.model.make_train_function()
    steps = _Steps(program.model.train_function, manifest.training.steps_per_segment)
    program.model.train_function = steps

    class Epochs(keras.callbacks.Callback):  # type: ignore[misc]
        """Without a word of batches: those would have Keras wait for its figures each time."""

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            steps.pause()

    fit = partial(
        program.model.fit,
        images,
        labels,
        batch_size=manifest.training.batch,
        verbose=0,
        callbacks=[Epochs()],
    )
    Thread(target=steps.fit, args=(fit,), daemon=True).start()
    return lambda: Turn(seconds=steps.take(part.segments) / part.segments)


class _Steps:
    """One long `fit` that pauses between turns, so that no turn pays for a call of it.

    What is timed is from before the first step of a turn until after its last one, without what
    comes between two epochs: how many of those are in a turn is chance.
    """

    def __init__(self, step: Callable[..., Any], segment: int) -> None:
        self._step, self._segment = step, segment
        self._left, self._began = 0, 0.0
        self._paused_at: float | None = None
        self._asked: Queue[int] = Queue()
        self._told: Queue[float | BaseException] = Queue()

    def take(self, segments: int) -> float:
        """So many segments more, and the seconds that they took."""
        self._asked.put(segments)
        told = self._told.get()
        if isinstance(told, BaseException):
            raise told
        return told

    def fit(self, fit: Callable[..., Any]) -> None:
        """Train without an end, in a thread of its own."""
        try:
            fit(epochs=sys.maxsize)
        except BaseException as error:
            self._told.put(error)

    def pause(self) -> None:
        """Leave out what comes before the next step."""
        self._paused_at = time.perf_counter()

    def __call__(self, *arguments: Any) -> Any:
        """A step, as `fit` takes it."""
        if not self._left:
            self._left = self._asked.get() * self._segment
            self._began = time.perf_counter()
        elif self._paused_at is not None:
            self._began += time.perf_counter() - self._paused_at
        self._paused_at = None
        found = self._step(*arguments)
        self._left -= 1
        if not self._left:
            self._told.put(time.perf_counter() - self._began)
        return found


if __name__ == "__main__":
    main()
