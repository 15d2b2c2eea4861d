"""Environment classes: machines on which the same manifest gives the same bits.

A class is what is known to decide bits, and what a calibration run came to, which also shows what
nobody thought of. How many threads share an operation decides as well, and stands in the manifest.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from trainyard.engine.processor import Processor
from trainyard.engine.runtime import Numerics
from trainyard.protocol.manifest.canonical import canonical, digest


class Environment(BaseModel):
    """All that is known to decide how a program's sums are rounded, but the number of threads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tensorflow: str
    tensorflow_build: str
    compiler: str
    keras: str
    numpy: str
    # Its exponentials and logarithms stand in for those that Eigen has no vectors for.
    libc: str
    processor: Processor
    numerics: Numerics
    layout: str
    deterministic: bool

    @property
    def fields(self) -> dict[str, str]:
        """Each part under one name, as text for people."""
        flat: dict[str, Any] = self.model_dump(exclude={"processor", "numerics"})
        flat |= self.processor.model_dump() | self.numerics.model_dump()
        return {name: _as_text(value) for name, value in sorted(flat.items())}


class Calibration(BaseModel):
    """What the fixed programs came to: the hashes of their last states, by number of threads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    states: dict[int, dict[str, str]]

    @property
    def digest(self) -> str:
        text = {str(threads): states for threads, states in self.states.items()}
        return digest(canonical(text)).hex()


class EnvironmentClass(BaseModel):
    """An environment with its calibration. Its id is what a manifest names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: Environment
    calibration: Calibration
    # How long it took to find out, which is no part of the class.
    seconds: float = 0.0

    @property
    def id(self) -> str:
        environment = self.environment.model_dump(mode="json")
        text = {"environment": environment, "calibration": self.calibration.digest}
        return digest(canonical(text)).hex()


def differences(wanted: EnvironmentClass, found: EnvironmentClass) -> list[str]:
    """What is different between two classes, one line for each thing."""
    ours, theirs = found.environment.fields, wanted.environment.fields
    lines = [
        f"{name} is {ours[name]}, not {theirs[name]}" for name in ours if ours[name] != theirs[name]
    ]
    ours_by, theirs_by = found.calibration.states, wanted.calibration.states
    for threads, states in ours_by.items():
        other = theirs_by.get(threads, {})
        names = [name for name, state in states.items() if other.get(name) != state]
        if names:
            lines.append(f"calibration at {threads} threads differs in {', '.join(names)}")
    return lines


def _as_text(value: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case None:
            return "any"
        case list() | tuple():
            return " ".join(value) or "none"
    return str(value)
