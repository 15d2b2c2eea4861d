"""The commands of a requester, as far as they need no chain."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from eth_account import Account
from typer.testing import CliRunner

import tests.quiet_web3  # noqa: F401
from tests.unit.rights import without_roots_rights
from trainyard.chain.keystore import open_keystore
from trainyard.cli.app import app
from trainyard.cli.failing import telling_failures
from trainyard.sdk.errors import RefusedError

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


def commands(group: Any, *path: str) -> Iterator[str]:
    """All below a group by their names, but for those of the agent, which has tests of its own."""
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, *path, name)
        else:
            yield " ".join((*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def test_commands_are_found_in_all_groups() -> None:
    known = {"predict", "audit", "doctor", "devnet up", "content add", "engine run", "dapp serve"}

    assert known <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_of_itself_and_json(command: str) -> None:
    outcome = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})

    assert outcome.exit_code == 0
    text = " ".join(outcome.stdout.split())
    assert re.search(rf"Examples?: .*'trainyard {command}\b", text), text
    # A demonstration is for people alone.
    assert ("--json" in text) == (command != "demo")


def test_the_shell_can_be_taught_to_complete() -> None:
    outcome = CliRunner().invoke(app, ["--show-completion", "bash"], prog_name="trainyard")

    assert outcome.exit_code == 0
    assert "_TRAINYARD_COMPLETE" in outcome.stdout


def test_what_cannot_be_posted_is_told_before_a_market_is_asked(home: Path) -> None:
    model, script, manifest = (home / f"train.{kind}" for kind in ("keras", "py", "json"))
    for path in (model, script, manifest, home / "train.txt"):
        path.write_text("")

    for wrong, why in (
        ([home / "none.py"], "none.py: there is no such file"),
        ([home / "train.txt"], "give a manifest (.json), a model (.keras) or a script (.py)"),
        ([model], "a model needs --data"),
        ([manifest, "--data", "x.npz"], "a manifest names its data itself: leave --data out"),
        ([manifest, "--target", "y"], "a manifest names its data itself: leave --target out"),
        ([manifest, "--script-s", 9], "--script-s is for how long a script"),
        ([model, "--data", "x.npz", "--script-s", 9], "--script-s is for how long a script"),
        ([script, "--target", "y"], "--target goes with --data"),
        ([manifest, "--epochs", 5], "how it is trained: leave --epochs out, or change train.json"),
        (
            [manifest, "--batch", 32, "--local-steps", 9, "--compression", "int8"],
            "leave --batch and --local-steps and --compression out",
        ),
        ([script, "--validation", "x.npz"], "with --validation give --data as well"),
        ([script, "--file", home / "none.csv"], "none.csv: there is no such file"),
        ([model, "--data", "x.npz", "--file", script], "--file is for what a script"),
    ):
        for command in ("post", "quote"):
            code, said = run(command, *wrong)
            assert (code, why in said["error"]) == (2, True), said


def test_notes_of_an_error_are_told_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    error = RefusedError("it went wrong")
    error.add_note("task 7 is posted")

    with pytest.raises(typer.Exit), telling_failures():
        raise error

    assert capsys.readouterr().err == "trainyard: it went wrong; task 7 is posted\n"
    full = OSError(28, "No space left on device")
    full.add_note("task 7 is posted")
    with pytest.raises(typer.Exit), telling_failures():
        raise full
    assert capsys.readouterr().err.endswith(
        "check the path and its permissions; task 7 is posted\n"
    )


def test_answers_that_could_not_be_kept_are_never_paid_for(home: Path) -> None:
    def predict(target: Path) -> tuple[int, str]:
        code, said = run("predict", 7, home / "x.npy", target, "--budget", "1 ETH")
        return code, said["error"]

    (home / "closed").mkdir(mode=0o700)
    (home / "kept.npy").write_bytes(b"")
    (home / "kept.npy").chmod(0o600)

    code, said = predict(home / "none" / "y.npy")
    assert (code, "none/y.npy cannot be written (No such file" in said) == (2, True)
    with without_roots_rights():
        for name in ("closed/y.npy", "kept.npy"):
            code, said = predict(home / name)
            assert (code, f"{name} cannot be written (Permission denied)" in said) == (2, True)


def test_other_slips_are_told_with_what_to_do(home: Path) -> None:
    nobody = "http://127.0.0.1:1"
    for wrong, why in (
        (("tasks", "--on", "nowhere"), "there is no profile 'nowhere'"),
        (("explain", 7, "--on", "nowhere"), "there is no profile 'nowhere'"),
        (("explain", 7, "--on", "a", "--folder", home), "name different markets"),
        (("explain", 7, "--on", "a", "--market", f"0x{'ab' * 20}"), "name different markets"),
        (("explain", 7, "--on", nobody, "--market", f"0x{'ab' * 20}"), "cannot be reached"),
        (("explain", 7, "--on", nobody), "Give market='0x…'"),
        (("watch", 7, "--on", "http://127.0.0.1:1"), "Give market='0x…'"),
        (("tasks", "--on", "http://127.0.0.1:1", "--market", "0x12"), "market: '0x12' will not do"),
        (("verify", home / "none.json"), "No such file"),
        (("account", "import", home / "none.hex"), "No such file"),
        (("config", "remove", "nowhere"), "there is no profile 'nowhere'"),
    ):
        code, said = run(*wrong)
        assert (code in (1, 2), why in said["error"]) == (True, True), said
