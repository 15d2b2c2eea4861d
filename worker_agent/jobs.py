"""The pieces of work that an agent gives to processes of its own, as they stand in files."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

_FORM = ConfigDict(frozen=True, extra="forbid")


class _Job(BaseModel):
    model_config = _FORM

    home: Path
    task: int
    # For how long what it computes may run; as long as it likes, if nothing is said.
    wall_s: float | None = None


class FetchJob(_Job):
    kind: Literal["fetch"] = "fetch"
    manifest: str
    env_class: str
    slots: int
    # Of the trace, where the terms say it.
    segments: int
    is_audited: bool
    is_scored: bool = False


class CardsJob(_Job):
    kind: Literal["cards"] = "cards"
    cards: tuple[str, ...]
    # Of the task's workers: whose gateways have what is wanted.
    profiles: tuple[str, ...] = ()


class SealJob(_Job):
    kind: Literal["seal"] = "seal"
    # Of the task: what was trained by another one is not its result.
    manifest: str
    served: tuple[int, ...] = ()
    is_open: bool = False
    self_audits: int = 0
    # Ours, of a run that others have a part in.
    slot: int | None = None


class AnswerJob(_Job):
    kind: Literal["answer"] = "answer"
    manifest: str
    result: str
    root: str
    segment: int
    is_scored: bool
    panel: tuple[int, int]
    seat: int
    # What is written beside the answer, to know it by.
    about: str
    # What is to be scored, by result and root: one, or in a contest what each slot has shown.
    entries: tuple[tuple[str, str] | None, ...]
    # Of the task's workers: whose gateways have what is wanted.
    profiles: tuple[str, ...] = ()


class LookJob(_Job):
    kind: Literal["look"] = "look"
    manifest: str
    result: str
    root: str
    segment: int
    # Of the workers, who may be the only ones to have what they show.
    profiles: tuple[str, ...] = ()


class StandbyJob(_Job):
    """To be ready for a seal or an answer, which is then told on the standard input."""

    kind: Literal["standby"] = "standby"
    manifest: str
    # Of the task's folder: where what segments are computed from will be. None if none are to be.
    inputs: str | None


class ForgetJob(_Job):
    """To remove what tasks left here. `task` is the first of them."""

    kind: Literal["forget"] = "forget"
    # Of each, the cards of its workers.
    cards: dict[int, tuple[str, ...]]


Job = FetchJob | CardsJob | SealJob | AnswerJob | LookJob | StandbyJob | ForgetJob
_ADAPTER: TypeAdapter[Job] = TypeAdapter(Job)


def read_job(path: Path) -> Job:
    return _ADAPTER.validate_json(path.read_bytes())
