"""What a run costs beside time: bytes between its workers, and energy."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.engine.energy import Basis
from trainyard.engine.journal import Entry, Journal
from trainyard.protocol.manifest import Manifest, RoundsPlan

_FLOAT_BYTES = 4
# Beside the metrics: the loss, and the number of examples.
_OTHER_SUMS = 2


@dataclass(frozen=True, slots=True)
class Costs:
    """Of all workers together, for the segments that were kept.

    Energy is an estimate; None where not all of them are measured, as in mode async.
    """

    sent_bytes: int
    energy_j: float | None
    energy_by: tuple[Basis, ...]

    @classmethod
    def of(cls, journal: Journal) -> "Costs":
        entries = list(_all_entries(journal))
        energies = [entry.energy for entry in entries if entry.energy is not None]
        return cls(
            sent_bytes=sum(entry.sent_bytes for entry in entries),
            energy_j=sum(one.joules for one in energies) if energies else None,
            energy_by=tuple(sorted({one.by for one in energies})),
        )


def step_bytes(manifest: Manifest) -> int:
    """What a worker of mode sync sends in a step: its vector, to each of the others.

    The vector is the gradients, the moving statistics, and the sums of the figures. In mode async,
    where one worker takes the step: the weights to it, and its vector back.
    """
    sums = len(manifest.training.metrics) + _OTHER_SUMS
    vector = (manifest.model.moving_parameters + sums) * _FLOAT_BYTES
    if manifest.training.mode == "async":
        return manifest.model.parameters * _FLOAT_BYTES + vector
    return vector * (manifest.training.workers - 1)


def evaluated_records(manifest: Manifest) -> int:
    """How many records a worker of a whole run only looks at: after epochs, and at the end."""
    plan, validation, test = manifest.plan, manifest.training.validation, manifest.data.test
    found = 0 if test is None else test.records
    if validation is not None:
        epochs = plan.steps * plan.batch // plan.train_records
        if isinstance(plan, RoundsPlan):
            # Once for all epochs that end in a round.
            epochs = min(epochs, plan.rounds)
        found += epochs * (validation.source.records if validation.source else plan.held_out)
    return found


def _all_entries(journal: Journal) -> Iterator[Entry]:
    """Workers of mode sync keep a journal each; those of rounds are all in the one of the run."""
    yield from journal.entries
    for folder in sorted((journal.folder / "peers").glob("*")):
        if (folder / "manifest.json").exists():
            yield from Journal.read(folder).entries
