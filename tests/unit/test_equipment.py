"""What the doctor says of a machine's equipment, each with its fix."""

from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.chain.keystore import create_keystore
from trainyard.cli.equipment import Item, examine_equipment

# Enough to be a keystore, and quick.
_LITTLE_WORK = 2


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its path, and a home without anything."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("CXX", raising=False)
    return tmp_path


def found() -> dict[str, Item]:
    return {item.name: item for item in examine_equipment()}


def test_everything_that_is_missing_has_its_fix(bare: Path) -> None:
    items = found()

    missing = {name: (item.what, item.fix) for name, item in items.items() if item.found is None}
    assert {"sandbox", "ganache", "compiler", "market", "keystore"} <= set(missing)
    assert all(what and fix for what, fix in missing.values())
    assert missing["sandbox"][0].startswith("bubblewrap is not installed")
    assert "apt install bubblewrap" in missing["sandbox"][1]
    assert "apt install nodejs npm" in missing["ganache"][1]
    assert "apt-get install g++" in missing["compiler"][1]
    assert "'trainyard devnet up'" in missing["market"][1]
    assert missing["keystore"][1] == "make one with 'trainyard account new'"


def test_nothing_of_it_is_needed_by_everybody(bare: Path) -> None:
    problems = [item.problem for item in found().values()]

    assert [one for one in problems if one is not None and one.needed] == []


def test_what_is_there_is_no_problem(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("node", "ganache", "g++"):
        (bare / "bin" / name).touch(mode=0o755)
    monkeypatch.setenv("TRAINYARD_GANACHE", str(bare / "bin" / "ganache"))
    folder = bare / "config" / "trainyard"
    folder.mkdir(parents=True)
    address = create_keystore(folder / "key.json", b"\1" * 32, "secret", work=_LITTLE_WORK)

    items = found()

    assert items["ganache"].found == str(bare / "bin" / "ganache")
    assert items["compiler"].found == "g++"
    assert items["keystore"].found == f"{folder / 'key.json'}, of {address}"
    assert [items[name].problem for name in ("ganache", "compiler", "keystore")] == [None] * 3


def test_a_profile_is_the_market_that_is_meant(bare: Path) -> None:
    folder = bare / "config" / "trainyard"
    folder.mkdir(parents=True)
    profile = f'endpoints = ["https://rpc.example.org"]\nmarket = "0x{"ab" * 20}"\n'
    config = folder / "config.toml"
    config.write_text(
        f'default = "live"\n[profiles.live]\n{profile}keystore = "{bare}/mine.json"\n'
    )

    assert found()["market"].found == "profile live"
    assert f"no key is in {bare}/mine.json" in found()["keystore"].what

    config.write_text("default = ")
    assert "is no TOML" in found()["market"].what
    assert found()["market"].fix == f"correct {config}"


def test_a_damaged_keystore_is_told_from_none(bare: Path) -> None:
    folder = bare / "config" / "trainyard"
    folder.mkdir(parents=True)
    (folder / "key.json").write_text("{}")

    item = found()["keystore"]

    assert item.found is None
    assert item.what.endswith("is no keystore that can be read")
    assert item.fix == "restore it from your backup"
