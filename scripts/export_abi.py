"""Exports the ABI and bytecode that the Python package ships: `make abi`, or `--check` in CI."""

import json

from scripts.compile_contracts import DEPLOYED, INTERFACE, ROOT, CompiledContract, compile_contracts
from scripts.generated_files import write_or_check

TARGET = ROOT / "trainyard" / "chain" / "abi"


def render(contract: CompiledContract) -> str:
    document = {
        "contractName": contract.name,
        "abi": contract.abi,
        "bytecode": f"0x{contract.creation_code.hex()}" if contract.is_deployable else None,
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main() -> None:
    contracts = compile_contracts()
    files = {f"{name}.json": render(contracts[name]) for name in (INTERFACE, *DEPLOYED)}
    write_or_check(TARGET, files, remake="make abi")


if __name__ == "__main__":
    main()
