"""The contracts as compiled, shipped inside the package.

`ITrainingMarket` is the whole interface of a deployed market: calls that `TrainingMarket` itself
does not know are answered by `MarketDisputes` behind the same address.
"""

from dataclasses import dataclass
from importlib import resources
from json import loads
from typing import Any


class ArtifactNotFoundError(LookupError):
    """The package ships no contract of this name."""


@dataclass(frozen=True, slots=True)
class Artifact:
    name: str
    abi: tuple[dict[str, Any], ...]
    # Creation code without constructor arguments; None for an interface.
    bytecode: bytes | None


def load_artifact(name: str) -> Artifact:
    folder = resources.files(__package__) / "abi"
    try:
        data = loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        shipped = sorted(entry.name.removesuffix(".json") for entry in folder.iterdir())
        raise ArtifactNotFoundError(
            f"no contract {name!r} in this package; it ships {', '.join(shipped)}"
        ) from None
    bytecode = data["bytecode"]
    return Artifact(
        name=data["contractName"],
        abi=tuple(data["abi"]),
        bytecode=None if bytecode is None else bytes.fromhex(bytecode.removeprefix("0x")),
    )
