"""Ganache and anvil: where they are found, and how each is told the same things."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from trainyard.devnet.errors import DevnetError
from trainyard.devnet.options import CHAIN_ID, ChainTool

# What the contracts are compiled for, and the newest that Ganache knows.
_HARDFORK = "shanghai"
_GAS_LIMIT = "30000000"
_FIXES: dict[ChainTool, str] = {
    "ganache": "run 'npm ci' in the working tree or 'npm install --global ganache', "
    "or name the program in TRAINYARD_GANACHE",
    "anvil": "run 'npm ci' in the working tree or install Foundry, "
    "or name the program in TRAINYARD_ANVIL",
}
# The method by which each is told how much an account has.
SET_BALANCE: dict[ChainTool, str] = {
    "ganache": "evm_setAccountBalance",
    "anvil": "anvil_setBalance",
}


def find_tool(name: ChainTool) -> Path:
    """The program: that of the environment, else of the working tree, else on PATH."""
    variable = f"TRAINYARD_{name.upper()}"
    if named := os.environ.get(variable):
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise DevnetError(f"{variable} names {named}, which is no program that can be run")
    for folder in _trees():
        program = folder / "node_modules" / ".bin" / name
        if os.access(program, os.X_OK):
            return program
    if on_path := shutil.which(name):
        return Path(on_path)
    raise DevnetError(f"{name} is not installed: {_FIXES[name]}")


def _trees() -> Iterator[Path]:
    """The working tree, from here upwards, and the one that this package lies in."""
    here = Path.cwd()
    yield from (here, *here.parents, Path(__file__).resolve().parents[2])


def command_of(
    tool: ChainTool, program: Path, *, port: int, folder: Path, block_time_s: int, ahead_s: int
) -> list[str]:
    """The command that runs a chain with its state in `folder`.

    No key is on it: accounts are funded afterwards, and everybody may read a command line.
    """
    given = _ganache if tool == "ganache" else _anvil
    options = given(folder, block_time_s, ahead_s)
    shared = {"port": str(port), "host": "127.0.0.1", "chain": str(CHAIN_ID)}
    spelled = {
        "ganache": {"port": "--server.port", "host": "--server.host", "chain": "--chain.chainId"},
        "anvil": {"port": "--port", "host": "--host", "chain": "--chain-id"},
    }[tool]
    options |= {spelled[name]: value for name, value in shared.items()}
    flags = (
        ["--wallet.lock", "--logging.quiet"]
        if tool == "ganache"
        else ["--preserve-historical-states", "--quiet"]
    )
    return [str(program), *flags, *(part for pair in options.items() for part in pair)]


def _ganache(folder: Path, block_time_s: int, ahead_s: int) -> dict[str, str]:
    options = {
        "--chain.hardfork": _HARDFORK,
        "--chain.networkId": str(CHAIN_ID),
        "--database.dbPath": str(folder / "ganache"),
        "--miner.blockGasLimit": _GAS_LIMIT,
        "--miner.blockTime": str(block_time_s),
        "--wallet.totalAccounts": "1",
        "--wallet.defaultBalance": "0",
    }
    if ahead_s:
        # It begins to mine at once, and must not go back in time.
        begin = datetime.fromtimestamp(datetime.now(UTC).timestamp() + ahead_s, UTC)
        options["--chain.time"] = begin.isoformat(timespec="seconds")
    return options


def _anvil(folder: Path, block_time_s: int, ahead_s: int) -> dict[str, str]:
    # Blocks by time begin when its clock is right, see `chain.py`.
    del block_time_s, ahead_s
    return {
        "--hardfork": _HARDFORK,
        "--accounts": "0",
        "--gas-limit": _GAS_LIMIT,
        "--state": str(folder / "anvil.json"),
        # What a crash may lose at most, in seconds.
        "--state-interval": "10",
        # Transactions of one block run in the order in which they were sent.
        "--order": "fifo",
    }
