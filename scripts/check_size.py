"""Prints the size of every deployable contract and fails when one exceeds what the EVM accepts."""

import sys

from scripts.compile_contracts import CompiledContract, compile_contracts

# EIP-170 limits the code of a contract, EIP-3860 the code that creates it.
RUNTIME_LIMIT_BYTES = 24_576
CREATION_LIMIT_BYTES = 49_152


def size_table(contracts: list[CompiledContract]) -> str:
    rows = [f"{'contract':<24}{'runtime':>9}{'left':>9}{'creation':>10}{'left':>9}"]
    for contract in contracts:
        runtime, creation = len(contract.runtime_code), len(contract.creation_code)
        rows.append(
            f"{contract.name:<24}{runtime:>9}{RUNTIME_LIMIT_BYTES - runtime:>9}"
            f"{creation:>10}{CREATION_LIMIT_BYTES - creation:>9}"
        )
    return "\n".join(rows)


def oversized(contracts: list[CompiledContract]) -> list[str]:
    return [
        contract.name
        for contract in contracts
        if len(contract.runtime_code) > RUNTIME_LIMIT_BYTES
        or len(contract.creation_code) > CREATION_LIMIT_BYTES
    ]


def deployable(contracts: dict[str, CompiledContract]) -> list[CompiledContract]:
    return [contract for _, contract in sorted(contracts.items()) if contract.is_deployable]


def main() -> None:
    contracts = deployable(compile_contracts())
    print(size_table(contracts))
    if too_large := oversized(contracts):
        sys.exit(f"too large to deploy: {', '.join(too_large)}")


if __name__ == "__main__":
    main()
