"""The record of one deployment: deployments/<chain id>.json."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "deployments"


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    chain_id: int
    address: str
    # First block to read events from.
    block: int
    # Of ITrainingMarket, the interface behind the market's address.
    abi_sha256: str
    constructor_arguments: dict[str, Any]
    # Addresses and creating transactions of the market and of the parts it delegates to.
    parts: dict[str, str]
    transactions: dict[str, str]


def abi_sha256(abi: list[dict[str, Any]]) -> str:
    """Hash of the ABI as JSON with sorted keys and no spaces."""
    canonical = json.dumps(abi, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_record(record: DeploymentRecord, folder: Path = FOLDER) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{record.chain_id}.json"
    path.write_text(json.dumps(asdict(record), indent=2) + "\n")
    return path
