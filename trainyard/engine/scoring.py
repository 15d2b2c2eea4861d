"""The score of a run that cannot be replayed: figures that anyone computes from its last state."""

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.errors import RunError, WrongAuditError
from trainyard.engine.journal import Measured, write_whole
from trainyard.engine.state import State
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.training import Training

SCORE = "score.json"
MOST_SCORE_BYTES = 1 << 16
# Evaluation adds up many float32 in another order: what that makes is far less.
_NEAR = 1e-3
# What float32 leaves of a loss that is nothing, such as that of outputs that are sure and right.
LEAST_LOSS = 1e-6


class Score(BaseModel):
    """What a state makes of records that it was not trained on."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    version: int = Field(default=1, ge=1, le=1)
    state: str = Field(pattern="^[0-9a-f]{64}$")
    records: Literal["test", "validation"]
    figures: Measured

    @property
    def text(self) -> str:
        """Equal for equal scores, also of figures that are no numbers."""
        return self.model_dump_json()

    def is_near(self, other: "Score", shares: Collection[str]) -> bool:
        """Whether the figures are equal up to what rounding makes of them on other machines.

        `shares` are the names of those that are shares of the examples.
        """
        if (self.state, self.records, self.figures.examples, self.figures.metrics.keys()) != (
            other.state,
            other.records,
            other.figures.examples,
            other.figures.metrics.keys(),
        ):
            return False
        # Of a share of examples, one that lies on the border may fall to either side.
        border = (1 + _NEAR) / max(self.figures.examples, 1)
        trios = [(self.figures.loss, other.figures.loss, LEAST_LOSS)]
        trios += [
            (value, other.figures.metrics[name], border if name in shares else LEAST_LOSS)
            for name, value in self.figures.metrics.items()
        ]
        return all(
            math.isclose(one, two, rel_tol=_NEAR, abs_tol=slack) for one, two, slack in trios
        )

    def claimed_for(self, state: str) -> "Score":
        """This score, which must be of `state`: a crash may have left that of an earlier one."""
        if self.state != state:
            raise RunError("the run's last state has no score yet: run it again to go on")
        return self

    def save(self, folder: Path) -> None:
        write_whole(folder / SCORE, self.text.encode())

    @classmethod
    def read(cls, data: bytes, where: str) -> "Score":
        try:
            return cls.model_validate(json.loads(data))
        except (ValueError, ValidationError, RecursionError) as error:
            raise RunError(f"{where} has no readable score") from error

    @classmethod
    def load(cls, folder: Path) -> "Score":
        """The score that the run in `folder` claims."""
        path = folder / SCORE
        if not path.exists():
            raise RunError(f"the run in {folder} has no score yet: run it to its end first")
        return cls.read(path.read_bytes(), str(folder))


def is_scored(manifest: Manifest) -> bool:
    """Whether runs of the manifest are scored, since nobody can replay them."""
    return manifest.training.mode == "async"


def require_replayable(manifest: Manifest) -> None:
    if is_scored(manifest):
        raise WrongAuditError(
            "a run in mode 'async' is not replayable: its segments cannot be computed again. Audit "
            "it without segments, which computes its score"
        )


def require_scored(manifest: Manifest) -> None:
    if not is_scored(manifest):
        raise WrongAuditError(
            f"a run in mode {manifest.training.mode!r} has no score, for it can be replayed: say "
            "which of its segments to compute, such as --segment 0"
        )


def score_of(
    manifest: Manifest, training: "Training", state: State, tested: Measured | None
) -> Score:
    """The score of a state: by the test, where the manifest has one, or by validation."""
    if tested is not None:
        return Score(state=state.hash.hex(), records="test", figures=tested)
    if manifest.data.test is not None:
        raise RunError("the manifest has records to test with, and the job has not")
    found = training.evaluate_unseen(state)
    figures = Measured(loss=found.loss, metrics=found.metrics, examples=found.examples)
    return Score(state=state.hash.hex(), records="validation", figures=figures)
