"""The document behind a claim: what the digest on chain that is called `result` stands for."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest.canonical import canonical, digest

LARGEST_RESULT_BYTES = 1 << 16
_DIGEST = "^[0-9a-f]{64}$"
# What a member answers whose segment starts from bytes that are the trace's and yet no state. All
# honest members answer the same, and no trace can have it.
NONSENSE = digest(b"trainyard: no state")


class ResultError(PermanentError):
    """A document that is no result, or that of another claim."""


class Result(BaseModel):
    """Where the evidence of a run and the run itself are found, by their CIDs.

    All workers of a task write the same one, so it says nothing that differs between them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    manifest: str = Field(pattern=_DIGEST)
    root: str = Field(pattern=_DIGEST)
    # By segment all that it takes to compute it again; served as segments are asked for.
    evidence: str = Field(max_length=128)
    # The whole run with its trace; served when nobody answers blind any more.
    run: str = Field(max_length=128)

    @cached_property
    def canonical(self) -> bytes:
        return canonical(self.model_dump(mode="json"))

    @property
    def digest(self) -> bytes:
        return digest(self.canonical)

    @classmethod
    def read(cls, data: bytes) -> "Result":
        """A result of whichever task."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise ResultError(f"no result: {error.errors()[0]['msg']}") from error

    @classmethod
    def parse(cls, data: bytes, *, manifest: bytes, root: bytes) -> "Result":
        """The result of a task's manifest and of the trace that its workers committed to."""
        found = cls.read(data)
        if (found.manifest, found.root) != (manifest.hex(), root.hex()):
            raise ResultError("the result is of another manifest or of another trace")
        return found


def points(loss: float, metrics: Mapping[str, float]) -> int:
    """A score as the market counts it: the first metric by name, in millionths.

    Without any metric it is what the loss leaves of a million: less loss is more.
    """
    value = metrics[min(metrics)] if metrics else 1 / (1 + max(loss, 0.0))
    if math.isnan(value):
        return 0
    return min(max(round(value * 1_000_000), 0), 2**32 - 1)
