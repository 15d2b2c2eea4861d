"""What a cheating agent does wrong."""

from enum import StrEnum
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from trainyard.engine.journal import write_whole

PLAN = "cheat.json"


class Cheat(StrEnum):
    # As the worker of a slot.
    LAZY = "lazy"
    SKIP = "skip"
    LR = "lr"
    DATA = "data"
    ORDER = "order"
    GARBAGE = "garbage"
    WITHHOLD = "withhold"
    # Among the workers of a run in rounds.
    DELTA = "delta"
    MERGE = "merge"
    # As the worker of a slot, or as auditor.
    COPY = "copy"
    # As auditor or referee.
    GUESS = "guess"
    COLLUDE = "collude"
    SILENT = "silent"
    # As anybody.
    FALSE_CHALLENGE = "false-challenge"


MEANING = {
    Cheat.LAZY: "make states up instead of training",
    Cheat.SKIP: "leave out steps of a fraction of the segments",
    Cheat.LR: "train with another learning rate than the manifest's",
    Cheat.DATA: "train on half of the records only",
    Cheat.ORDER: "train on all records, in another order than the manifest's",
    Cheat.GARBAGE: "among others feed them noise; alone, commit to bytes that are no states",
    Cheat.WITHHOLD: "serve nothing that is asked for, and open nothing",
    Cheat.DELTA: "in rounds, send the others another delta than training came to",
    Cheat.MERGE: "in rounds, as who leads, merge the deltas to another state",
    Cheat.COPY: "commit to what another slot or seat has committed to",
    Cheat.GUESS: "answer with the state that a segment starts from",
    Cheat.COLLUDE: "answer what the worker in --partner's home has claimed",
    Cheat.SILENT: "be drawn, and say nothing",
    Cheat.FALSE_CHALLENGE: "accuse a segment that is right",
}


class Plan(BaseModel):
    """One cheat, and how much of it. Kept in the agent's home, where its processes find it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cheat: Cheat
    # Of the segments, or of the rounds, those that are cheated on; chosen by the seed.
    fraction: float = Field(default=1.0, gt=0, le=1)
    # Of the steps of such a segment, those that are done all the same.
    done: float = Field(default=0.0, ge=0, lt=1)
    seed: int = 0
    # The home of the worker whose claim is confirmed.
    partner: Path | None = None

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        return cls.model_validate_json((folder / PLAN).read_bytes())

    def write(self, folder: Path) -> None:
        write_whole(folder / PLAN, self.model_dump_json().encode())

    def cheated(self, segments: int) -> set[int]:
        """At least one."""
        count = max(1, round(self.fraction * segments))
        chosen = np.random.default_rng(self.seed).choice(segments, count, replace=False)
        return {int(segment) for segment in chosen}
