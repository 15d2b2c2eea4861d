"""Compiles our contracts once, in the way in which brownie compiles what it deploys.

The settings are read from brownie-config.yaml, and sources keep the names brownie gives them. Both
end in the metadata hash at the end of the bytecode: what we export, measure and deploy is the same,
byte for byte.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import solcx
import yaml

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ROOT / "contracts"
# Test doubles: compiled by brownie and forge, never exported, measured or analysed.
MOCKS = CONTRACTS / "mocks"

# What a market consists of on chain, each part before the one that delegates to it, and the
# interface that callers use with the market's address.
DEPLOYED = ("MarketDisputes", "MarketSettlement", "TrainingMarket")
INTERFACE = "ITrainingMarket"

OUTPUTS = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "storageLayout"]


@dataclass(frozen=True, slots=True)
class CompilerSettings:
    version: str
    evm_version: str
    optimizer: dict[str, Any]
    remappings: list[str]
    via_ir: bool


@dataclass(frozen=True, slots=True)
class CompiledContract:
    name: str
    source: str
    abi: list[dict[str, Any]]
    creation_code: bytes
    runtime_code: bytes
    storage_layout: dict[str, Any]

    @property
    def is_deployable(self) -> bool:
        return len(self.creation_code) > 0


def read_compiler_settings(config: Path = ROOT / "brownie-config.yaml") -> CompilerSettings:
    compiler = yaml.safe_load(config.read_text())["compiler"]
    solc = compiler["solc"]
    return CompilerSettings(
        version=str(solc["version"]),
        evm_version=compiler["evm_version"],
        optimizer=solc["optimizer"],
        remappings=solc["remappings"],
        via_ir=bool(solc.get("viaIR", False)),
    )


def own_sources() -> list[Path]:
    sources = sorted(CONTRACTS.rglob("*.sol"))
    return [source for source in sources if not source.is_relative_to(MOCKS)]


def compile_contracts() -> dict[str, CompiledContract]:
    """Every contract, library and interface under contracts/ except the mocks, by name."""
    settings = read_compiler_settings()
    request: dict[str, Any] = {
        "language": "Solidity",
        "sources": {
            source.relative_to(ROOT).as_posix(): {"content": source.read_text()}
            for source in own_sources()
        },
        "settings": {
            "evmVersion": settings.evm_version,
            "optimizer": settings.optimizer,
            "remappings": settings.remappings,
            "outputSelection": {"*": {"*": OUTPUTS}},
        },
    }
    if settings.via_ir:
        request["settings"]["viaIR"] = True
    answer = solcx.compile_standard(
        request, base_path=ROOT, allow_paths=[ROOT], solc_version=settings.version
    )
    return {contract.name: contract for contract in _own_contracts(answer)}


def _own_contracts(answer: dict[str, Any]) -> Iterator[CompiledContract]:
    for source, contracts in answer["contracts"].items():
        if not source.startswith("contracts/"):
            continue
        for name, output in contracts.items():
            yield CompiledContract(
                name=name,
                source=source,
                abi=output["abi"],
                creation_code=bytes.fromhex(output["evm"]["bytecode"]["object"]),
                runtime_code=bytes.fromhex(output["evm"]["deployedBytecode"]["object"]),
                storage_layout=output["storageLayout"],
            )
