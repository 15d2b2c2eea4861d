"""Locks and tool configurations: complete, free of addresses, and of one mind."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.compile_contracts import read_compiler_settings

ROOT = Path(__file__).resolve().parents[2]
PYTHON_LOCKS = sorted((ROOT / "locks").glob("*.txt"))
EXACT_VERSION = re.compile(r"\d+\.\d+\.\d+")


def read_json(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / name).read_text())
    return content


@pytest.mark.parametrize("lock", PYTHON_LOCKS, ids=lambda path: path.name)
def test_python_lock_pins_every_package_with_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    requirements = text.replace("\\\n", " ").strip().splitlines()

    assert requirements
    assert "://" not in text
    assert not re.search(r"^--?(index|extra|find|trusted)", text, re.MULTILINE)
    for requirement in requirements:
        assert re.match(r"[a-z0-9._-]+==\S+ .*--hash=sha256:", requirement), requirement


def test_npm_lock_has_hashes_and_no_address() -> None:
    text = (ROOT / "package-lock.json").read_text()
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}

    assert "://" not in text
    unhashed = [
        name
        for name, entry in packages.items()
        if "integrity" not in entry and not entry.get("inBundle")
    ]
    assert unhashed == []


def test_npm_packages_are_pinned_exactly() -> None:
    package = read_json("package.json")
    wanted = package["devDependencies"] | package["optionalDependencies"]

    assert {name: v for name, v in wanted.items() if not EXACT_VERSION.fullmatch(v)} == {}


def test_brownie_npm_and_forge_agree_on_the_compiler() -> None:
    brownie = read_compiler_settings()
    forge = tomllib.loads((ROOT / "foundry.toml").read_text())["profile"]["default"]

    assert brownie.version == read_json("package.json")["devDependencies"]["solc"]
    assert forge["solc"] == f".venv/solcx/solc-v{brownie.version}"
    assert forge["evm_version"] == brownie.evm_version
    assert forge["remappings"] == brownie.remappings
    assert forge["optimizer"] == brownie.optimizer["enabled"]
    assert forge["optimizer_runs"] == brownie.optimizer["runs"]
    assert forge.get("via_ir", False) == brownie.via_ir


def test_every_own_source_names_the_one_compiler() -> None:
    version = read_compiler_settings().version
    pragmas = {
        source.name: re.findall(r"^pragma solidity (.*);$", source.read_text(), re.MULTILINE)
        for source in (ROOT / "contracts").rglob("*.sol")
    }

    assert {name: found for name, found in pragmas.items() if found != [version]} == {}
