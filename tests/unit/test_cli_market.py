"""The commands of a requester, as far as they need no chain."""

import json
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from typer.testing import CliRunner

import tests.quiet_web3  # noqa: F401
from trainyard.chain.keystore import open_keystore
from trainyard.cli.app import app

MARKET = "0x" + "ab" * 20
KEY = "11" * 32


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def run(*arguments: object, stdin: str = "") -> tuple[int, Any]:
    outcome = CliRunner().invoke(app, [*map(str, arguments), "--json"], input=stdin)
    assert outcome.stdout, outcome.stderr
    return outcome.exit_code, json.loads(outcome.stdout)


def test_profiles_are_made_changed_shown_and_removed() -> None:
    first = ("config", "set", "mine", "--endpoint", "http://127.0.0.1:1", "--market", MARKET)
    assert run(*first, "--default")[0] == 0
    assert run("config", "set", "mine", "--start-block", 7)[0] == 0

    _, shown = run("config", "show")

    assert shown["default"] == "mine"
    assert shown["profiles"]["mine"]["start_block"] == 7
    assert shown["profiles"]["mine"]["market"] == MARKET
    assert run("config", "remove", "mine")[0] == 0
    assert run("config", "show")[1]["profiles"] == {}


def test_a_profile_with_a_slip_is_not_kept() -> None:
    code, said = run("config", "set", "mine", "--endpoint", "http://x", "--market", "0x12")

    assert (code, said["error"].split(":")[:2]) == (2, ["profile mine", " market"])
    assert run("config", "show")[1]["profiles"] == {}


def test_a_key_is_imported_once_and_opened_by_its_password(home: Path) -> None:
    password = home / "password"
    password.write_text("a good one\n")
    password.chmod(0o600)
    given = ("account", "import", "-", "--password-file", password)

    code, said = run(*given, stdin=KEY)

    address = Account.from_key(KEY).address
    assert (code, said["address"]) == (0, address)
    kept = Path(said["keystore"])
    assert kept.stat().st_mode & 0o077 == 0
    assert open_keystore(kept, "a good one").address == address
    code, said = run(*given, stdin=KEY)
    assert code == 1
    assert "not replaced" in said["error"]


def test_without_a_devnet_commands_say_how_to_get_one() -> None:
    for command in (("tasks",), ("cancel", 1), ("account", "balance")):
        code, said = run(*command)
        assert code == 1
        assert "trainyard devnet up" in said["error"]


def test_wrong_uses_are_told_before_anything_is_asked(home: Path) -> None:
    wrong = home / "receipt.json"
    wrong.write_text("{}")

    assert run("fetch", 1, home / "model.pdf")[0] == 2
    code, said = run("verify", wrong)
    assert code == 1
    assert "no receipt of trainyard.fit: chain_id: Field required" in said["error"]
