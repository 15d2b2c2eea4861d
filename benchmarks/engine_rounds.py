"""Two workers that meet now and then, beside two in step: what they send, and what they learn.

    python -m benchmarks.engine_rounds sync|rounds TRAIN TEST     all seeds in one process, as JSON

Accuracy does not depend on how many processes compute a run, whose states are the same in any case
(tests/engine/test_cluster.py). So the quick form takes one process for all runs of a mode.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from benchmarks.engine_nets import LENET, ROOT, manifest_of
from trainyard.engine.costs import Costs, step_bytes
from trainyard.engine.events import Ended, Event
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local, Manifest

_MODES = ("sync", "rounds")
_SEEDS = (1, 2, 3)
_WORKERS = 2
_LOCAL_STEPS = 50
# Whole rounds that come nearest to an epoch at the batch of 128.
_EPOCH = 450
_EPOCHS, _QUICK_EPOCHS = 3, 1


class Learned(BaseModel):
    """What a run came to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accuracy: float
    sent_bytes: int


def measure_rounds(folder: Path, files: Files, *, quick: bool) -> tuple[float, float]:
    """Bytes in rounds against those in step, and the difference in accuracy: means over seeds."""
    if quick:
        with ThreadPoolExecutor(len(_MODES)) as pool:
            found = dict(
                zip(_MODES, pool.map(lambda mode: _alone(mode, files), _MODES), strict=True)
            )
    else:
        found = {mode: [_run(mode, seed, folder, files) for seed in _SEEDS] for mode in _MODES}
    sync, rounds = (found[mode] for mode in _MODES)
    sent = [statistics.mean(one.sent_bytes for one in runs) for runs in (rounds, sync)]
    right = [statistics.mean(one.accuracy for one in runs) for runs in (rounds, sync)]
    return sent[0] / sent[1], right[0] - right[1]


def _manifest(mode: str, seed: int, epochs: int) -> Manifest:
    rounds = {"local_steps": _LOCAL_STEPS, "inner": "fresh", "compression": "int8"}
    changes: dict[str, Any] = {"rounds": rounds} if mode == "rounds" else {}
    return manifest_of(
        LENET,
        mode=mode,
        workers=_WORKERS,
        batch=128,
        threads=1,
        seed=seed,
        until={"steps": epochs * _EPOCH},
        steps_per_segment=_LOCAL_STEPS,
        **changes,
    )


def _run(mode: str, seed: int, folder: Path, files: Files) -> Learned:
    """A whole run, with its workers."""
    accuracy: list[float] = []
    catch = _catching(accuracy)
    journal = run_local(_manifest(mode, seed, _EPOCHS), files, folder / f"{mode}-{seed}", catch)
    return Learned(accuracy=accuracy[-1], sent_bytes=Costs.of(journal).sent_bytes)


def _catching(accuracy: list[float]) -> Callable[[Event], None]:
    def catch(event: Event) -> None:
        if isinstance(event, Ended) and event.tested is not None:
            accuracy.append(event.tested.metrics["accuracy"])

    return catch


def _alone(mode: str, files: Files) -> list[Learned]:
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine_rounds", mode, str(files.train), str(files.test)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return [Learned.model_validate(one) for one in json.loads(child.stdout.splitlines()[-1])]


def main() -> None:
    mode, train, test = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    from trainyard.engine import runtime

    runtime.start(threads=1)

    from trainyard.engine.data import open_folder
    from trainyard.engine.program import build
    from trainyard.engine.rounds import RoundsTraining
    from trainyard.engine.training import Material, Training

    learned = []
    for seed in _SEEDS:
        manifest = _manifest(mode, seed, _QUICK_EPOCHS)
        material = Material(open_folder(manifest.data.train, train))
        training: Training
        if mode == "rounds":
            training = RoundsTraining(manifest, build(manifest), material)
            state, sent_bytes = _rounds(training)
        else:
            training = Training(manifest, build(manifest), material)
            state = training.start()
            for segment in range(manifest.plan.segments):
                state = training.run(segment, state).state
            sent_bytes = _WORKERS * manifest.plan.steps * step_bytes(manifest)
        source = manifest.data.test
        if source is None:
            raise RuntimeError("the example has no test records")
        figures = training.evaluate(state, source, open_folder(source, test))
        learned.append({"accuracy": figures.metrics["accuracy"], "sent_bytes": sent_bytes})
    print(json.dumps(learned))


def _rounds(training: Any) -> tuple[State, int]:
    """The last global state, and what all workers sent to all others; none keeps anything."""
    globe, sent_bytes = training.start(), 0
    for number in range(training.plan.rounds):
        deltas = {}
        for slot in range(_WORKERS):
            part = training.local(Local(number, slot), globe, None)
            deltas[slot] = part.delta
            sent_bytes += (part.delta.size + part.state.size) * (_WORKERS - 1)
        globe = training.merge(number, globe, deltas)
    return globe, sent_bytes


if __name__ == "__main__":
    main()
