"""The two ways in which `benchmarks.mnist_nets` trains: by the engine, and by Keras' own `fit`."""

import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from examples.mnist.boost import accuracy_of, boost, weights
from trainyard.content.content import Content
from trainyard.demo.mnist import Arrays
from trainyard.engine.costs import Costs
from trainyard.engine.energy import Meter, find_power
from trainyard.engine.events import Ended, Event, Finished
from trainyard.engine.launching import run_local
from trainyard.engine.material import fetch_files
from trainyard.protocol.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Figures:
    """What training came to; energy is an estimate."""

    accuracy: float
    seconds: float
    examples: int
    energy_j: float | None = None
    sent_bytes: int = 0

    @property
    def examples_per_s(self) -> float:
        return self.examples / self.seconds

    @property
    def document(self) -> dict[str, float | None]:
        return {**asdict(self), "examples_per_s": self.examples_per_s}

    def after(self, before: "Figures") -> "Figures":
        """Of two nets one after the other, with the outcome of the second."""
        energy_j = None
        if self.energy_j is not None and before.energy_j is not None:
            energy_j = self.energy_j + before.energy_j
        return Figures(
            accuracy=self.accuracy,
            seconds=self.seconds + before.seconds,
            examples=self.examples + before.examples,
            energy_j=energy_j,
            sent_bytes=self.sent_bytes + before.sent_bytes,
        )


class EngineTrainer:
    """Trains in processes of their own, whose runs are kept below a folder."""

    def __init__(self, content: Content, folder: Path) -> None:
        self._content, self._folder = content, folder

    def train(self, manifest: Manifest, nets: int) -> Figures:
        """The first of `nets` that are boosted is the manifest's; alone, it is not boosted."""
        runs = [self._folder / f"{manifest.digest.hex()}-1"]
        figures = self._run(manifest, runs[0])
        while len(runs) < nets:
            following = boost(self._content, runs)
            runs.append(self._folder / f"{manifest.digest.hex()}-{len(runs) + 1}")
            figures = self._run(following, runs[-1]).after(figures)
        if nets == 1:
            return figures
        return replace(figures, accuracy=accuracy_of(self._content, runs))

    def _run(self, manifest: Manifest, folder: Path) -> Figures:
        files = fetch_files(manifest, self._content, self._folder / "files")
        times: list[float] = []
        accuracy = 0.0

        def watch(event: Event) -> None:
            nonlocal accuracy
            if isinstance(event, Finished):
                times.append(time.perf_counter())
            if isinstance(event, Ended) and event.tested is not None:
                accuracy = event.tested.metrics["accuracy"]

        costs = Costs.of(run_local(manifest, files, folder, watch))
        return Figures(
            accuracy=accuracy,
            # The first state is told of before the first step.
            seconds=times[-1] - times[0],
            examples=manifest.plan.steps * manifest.training.batch,
            energy_j=costs.energy_j,
            sent_bytes=costs.sent_bytes,
        )


class PlainTrainer:
    """Trains the same models in this process, as anybody would who does not want a trace."""

    def __init__(self, data: dict[str, Arrays]) -> None:
        self._train, self._test = data["train"], data["test"]

    def train(self, manifest: Manifest, nets: int) -> Figures:
        """As `EngineTrainer` does."""
        model, figures = self._fit(manifest, None)
        on_train, on_test = 0, _outputs(model, self._test["image"])
        for number in range(1, nets):
            on_train = on_train + _outputs(model, self._train["image"])
            weight = weights(on_train, self._train["label"])
            model, own = self._fit(_reseeded(manifest, number), weight)
            figures = own.after(figures)
            on_test = on_test + _outputs(model, self._test["image"])
        right = on_test.argmax(axis=1) == self._test["label"]
        return replace(figures, accuracy=float(right.mean()))

    def _fit(self, manifest: Manifest, weight: Any) -> tuple[Any, Figures]:
        import keras

        from trainyard.engine.program import build

        program, plan = build(manifest), manifest.plan
        program.model.compile(
            optimizer=program.optimizer,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        examples = plan.steps * plan.batch
        count = min(examples, plan.train_records)
        meter = Meter(find_power())
        began = time.perf_counter()
        program.model.fit(
            self._train["image"][:count],
            self._train["label"][:count],
            sample_weight=None if weight is None else weight[:count],
            batch_size=plan.batch,
            epochs=examples // count,
            verbose=0,
        )
        seconds, energy = time.perf_counter() - began, meter.take()
        joules = None if energy is None else energy.joules
        return program.model, Figures(0.0, seconds, examples, joules)


def _reseeded(manifest: Manifest, number: int) -> Manifest:
    document = json.loads(manifest.canonical)
    document["training"]["seed"] += number
    return Manifest.of(document)


def _outputs(model: Any, images: Any) -> Any:
    """As probabilities."""
    import keras

    logits = model.predict(images, batch_size=1000, verbose=0)
    return keras.ops.convert_to_numpy(keras.ops.softmax(logits))
