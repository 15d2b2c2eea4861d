"""The operator's commands as processes, against a market on an anvil of their own."""

import json
import os
import shutil
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address
from pydantic import BaseModel

import tests.quiet_web3  # noqa: F401
from tests.market.command import Trainyard
from trainyard.chain.calls import MarketCalls
from trainyard.chain.keystore import open_keystore
from trainyard.devnet.agents import make_home, password_file
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options
from worker_agent.config_file import MEANINGS, config_text
from worker_agent.locking import held_key
from worker_agent.settings import Home, Settings, read_settings
from worker_agent.unit import Unit, unit_text

MARKET = "0x" + "ab" * 20
CHAIN = ("--endpoint", "http://127.0.0.1:1", "--chain-id", "1", "--start-block", "0")
ETHER = 10**18


@pytest.fixture(scope="module")
def devnet() -> Iterator[Devnet]:
    options = Options(chain="anvil", block_time_s=0, workers=2, auditors=1)
    with Devnet(options=options) as devnet:
        yield devnet


@pytest.fixture(scope="module")
def ready(devnet: Devnet) -> Path:
    """A home that the devnet made, as it does for its agents."""
    return make_home(devnet, "worker-1")


@pytest.fixture
def trainyard(tmp_path: Path) -> Trainyard:
    return Trainyard(tmp_path)


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.touch(0o600)
    path.write_text("secret\n")
    return path


class TestInit:
    def test_folder_has_settings_and_a_key(
        self, trainyard: Trainyard, tmp_path: Path, password: Path
    ) -> None:
        made = trainyard.document(
            *("worker", "init", *CHAIN, "--market", MARKET, "--payout", MARKET),
            *("--password-file", password, "--set", "policy.bond=7"),
        )

        home = Home(tmp_path / "data" / "trainyard" / "worker")
        assert made["home"] == str(home.folder)
        assert open_keystore(home.keystore, "secret").address == made["address"]
        settings = read_settings(home)
        assert (settings.chain.market, settings.payout, settings.policy.bond) == (MARKET, MARKET, 7)
        assert home.folder.stat().st_mode & 0o777 == 0o700
        again = trainyard.run("worker", "init", *CHAIN, "--market", MARKET)
        assert again[0] == 2
        assert "left as it is" in again[2]

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (("--market", MARKET, "--set", "policy.bond=many"), "is no TOML"),
            (("--market", MARKET, "--set", "policy.bnod=1"), "policy.bnod: Extra inputs"),
            (("--market", "0x12"), "chain.market: String should match"),
            ((), "--market is missing, and nobody can be asked"),
            (("--market", MARKET, "--key-file", "-"), "that is no private key"),
        ],
    )
    def test_what_cannot_be_is_refused_and_leaves_nothing(
        self, trainyard: Trainyard, tmp_path: Path, given: tuple[str, ...], said: str
    ) -> None:
        code, _, err = trainyard.run("worker", "init", *CHAIN, *given, "--home", tmp_path / "home")

        assert code in (1, 2)
        assert said in err
        assert err.count("\n") == 1
        assert not list(tmp_path.iterdir())

    def test_file_explains_every_setting_and_reads_back(self) -> None:
        settings = Settings.model_validate(_LEAST)
        text = config_text(settings)
        assert Settings.model_validate(tomllib.loads(text)) == settings

        everything = dict(_fields(Settings, ""))
        assert everything.keys() == MEANINGS.keys()
        # What is commented out has an example, with which it is a file still.
        shown = tomllib.loads("\n".join(map(_uncommented, text.splitlines())))
        assert {name for name, _ in _leaves(shown, "")} | _tables(shown) == everything.keys()
        # All at once, but for a node that takes the place of what the agent serves itself.
        del shown["content"]["kubo"]
        Settings.model_validate(shown)
        written = dict(_leaves(tomllib.loads(text), ""))
        for name, default in everything.items():
            if name in written and not name.startswith("chain."):
                assert written[name] == json.loads(json.dumps(default))


class TestDoctor:
    def test_home_of_the_devnet_lacks_nothing_of_chain_and_content(
        self, trainyard: Trainyard, devnet: Devnet, ready: Path
    ) -> None:
        code, out, _ = trainyard.run("worker", "doctor", "--no-machine", "--json", "--home", ready)

        found = json.loads(out)
        assert found["address"] == devnet.accounts["worker-1"].address
        assert found["balance_wei"] == devnet.options.balance_wei
        assert found["registered"] is False
        wrong = [one["what"] for one in found["problems"] if one["needed"]]
        assert [what for what in wrong if "sandbox" not in what] == []
        assert code == (1 if wrong else 0)

    def test_each_failure_has_its_fix(
        self, trainyard: Trainyard, devnet: Devnet, tmp_path: Path, password: Path
    ) -> None:
        home = tmp_path / "home"
        with socket.create_server(("127.0.0.1", 0)) as taken:
            trainyard.document(
                *("worker", "init", "--home", home, "--password-file", password),
                *("--endpoint", devnet.url, "--endpoint", "http://127.0.0.1:1"),
                *("--market", MARKET, "--chain-id", "1337", "--start-block", "0"),
                *("--kubo", "http://127.0.0.1:1"),
                *("--set", f"metrics_port={taken.getsockname()[1]}"),
            )
            code, out, _ = trainyard.run("worker", "doctor", "--no-machine", "--home", home)

        assert code == 1
        lines = [line for line in out.splitlines() if line.startswith("PROBLEM")]
        for what in (
            "http://127.0.0.1:1: cannot be reached",
            f"there is no contract at {MARKET}",
            "kubo 127.0.0.1:1 does not answer",
            "cannot listen at 127.0.0.1",
        ):
            assert any(what in line and "; " in line for line in lines), what

    def test_other_chain_and_missing_settings_are_named(
        self, trainyard: Trainyard, devnet: Devnet, tmp_path: Path, password: Path
    ) -> None:
        home = tmp_path / "home"
        code, _, err = trainyard.run("worker", "doctor", "--home", home)
        assert (code, "trainyard worker init" in err) == (1, True)
        trainyard.document(
            *("worker", "init", "--home", home, "--password-file", password),
            *("--endpoint", devnet.url, "--market", MARKET),
            *("--chain-id", "5", "--start-block", "0"),
        )
        code, out, _ = trainyard.run("worker", "doctor", "--no-machine", "--home", home)
        assert code == 1
        assert "serves chain 1337, not 5" in out


class TestWithdraw:
    def test_credit_goes_where_it_is_sent_once(
        self, trainyard: Trainyard, devnet: Devnet, ready: Path
    ) -> None:
        worker = devnet.accounts["worker-1"]
        _send(devnet, worker, MarketCalls(devnet.market).deposit(3 * ETHER, value=3 * ETHER))
        at = ("--home", ready, "--password-file", password_file(ready))
        target = "0x00000000000000000000000000000000000000aa"

        done = trainyard.document("worker", "withdraw", *at, "--to", target, "--amount", str(ETHER))
        rest = trainyard.document("worker", "withdraw", *at, "--to", to_checksum_address(target))
        empty = trainyard.run("worker", "withdraw", *at, "--to", target)

        assert (done["amount"], rest["amount"]) == (ETHER, 2 * ETHER)
        assert done["block"] is not None
        held = devnet.chain.request("eth_getBalance", target, "latest")
        assert int(held, 16) == 3 * ETHER
        assert empty[0] == 1
        assert "there is nothing to withdraw" in empty[2]

    def test_one_that_was_cut_off_is_finished_and_not_sent_again(
        self, trainyard: Trainyard, devnet: Devnet
    ) -> None:
        home = make_home(devnet, "worker-2")
        worker = devnet.accounts["worker-2"]
        _send(devnet, worker, MarketCalls(devnet.market).deposit(ETHER, value=ETHER))
        at = ("--home", home, "--password-file", password_file(home), "--to", "0x" + "bb" * 20)
        some = ("worker", "withdraw", *at, "--amount", str(ETHER // 4))
        devnet.chain.request("evm_setAutomine", False)
        try:
            sent = trainyard.document(*some, "--timeout", "0")
            again = trainyard.document(*some, "--timeout", "0")
        finally:
            devnet.chain.request("evm_setAutomine", True)
            devnet.chain.mine()
        after = trainyard.document(*some)

        assert sent["block"] is None
        assert (again["transaction"], again["amount"]) == (sent["transaction"], None)
        assert after["transaction"] != sent["transaction"]
        held = devnet.chain.request("eth_getBalance", "0x" + "bb" * 20, "latest")
        assert int(held, 16) == ETHER // 2

    def test_it_is_refused_while_the_agent_runs_and_without_an_address(
        self, trainyard: Trainyard, devnet: Devnet, ready: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", trainyard.environment["XDG_STATE_HOME"])
        at = ("--home", ready, "--password-file", password_file(ready))
        assert "say --to" in trainyard.run("worker", "withdraw", *at)[2]
        wrong = trainyard.run("worker", "withdraw", *at, "--to", "0x" + "aB" * 20)
        assert "wrong checksum" in wrong[2]
        with held_key(devnet.accounts["worker-1"].address, Home(ready)):
            code, _, err = trainyard.run("worker", "withdraw", *at, "--to", MARKET)
        # Whoever has the key is the one to send, and this one does not answer.
        assert code == 1
        assert "agent" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused, and these tests are not root")
def test_root_is_refused_before_anything_is_read(trainyard: Trainyard, tmp_path: Path) -> None:
    code, out, err = trainyard.run("worker", "run", "--home", tmp_path / "nothing")
    told = trainyard.run("worker", "run", "--home", tmp_path / "nothing", "--allow-root")

    assert (code, out) == (2, "")
    assert "must not be root" in err
    assert "--allow-root" in err
    assert "root" not in told[2].replace(str(tmp_path), "")


class TestService:
    UNIT = Unit(
        command=("/usr/bin/env", "true", "--home"),
        home=Path("/var/lib/trainyard worker/100%"),
        password_file=Path("/etc/trainyard/password"),
        user="daemon",
        memory_bytes=5 << 30,
    )

    def test_systemd_has_nothing_against_the_unit(self, tmp_path: Path) -> None:
        analyse = shutil.which("systemd-analyze")
        if analyse is None:
            pytest.fail("systemd-analyze is not installed: run 'make systemd'", pytrace=False)
        file = tmp_path / "trainyard-worker.service"
        file.write_text(unit_text(self.UNIT))

        checked = subprocess.run([analyse, "verify", file], capture_output=True, text=True)
        rated = subprocess.run(
            [analyse, "security", "--offline=true", "--threshold=40", file],
            capture_output=True,
            text=True,
        )

        assert (checked.returncode, checked.stderr) == (0, "")
        assert rated.returncode == 0, rated.stdout

    def test_all_that_an_agent_keeps_is_where_the_service_may_write(self) -> None:
        lines = unit_text(self.UNIT).splitlines()
        [kept] = [line.removeprefix("Environment=") for line in lines if "XDG_" in line]

        assert dict(one.split("=") for one in kept.split()) == {
            "XDG_STATE_HOME": "%S/trainyard",
            "XDG_CACHE_HOME": "%C/trainyard",
        }
        assert {"StateDirectory=trainyard", "CacheDirectory=trainyard"} <= set(lines)

    def test_names_with_spaces_and_signs_stay_one_word(self) -> None:
        assert '"/var/lib/trainyard worker/100%%"' in unit_text(self.UNIT)

    def test_command_prints_it_and_refuses_root_and_files_that_are_there(
        self, trainyard: Trainyard, ready: Path, tmp_path: Path
    ) -> None:
        at = ("worker", "service", "install", "--home", ready)
        assert "must not be root" in trainyard.run(*at, "--user", "root")[2]
        code, out, err = trainyard.run(*at, "--user", "daemon")
        assert (code, err) == (0, "")
        assert "LoadCredential=trainyard-password:/etc/trainyard/password" in out
        assert f"ReadWritePaths={ready}" in out
        file = tmp_path / "x.service"
        written = trainyard.document(*at, "--user", "daemon", "--write", file)
        assert file.read_text() == written["unit"]
        code, _, err = trainyard.run(*at, "--user", "daemon", "--write", file)
        assert (code, "is there already" in err) == (2, True)


_LEAST = {
    "chain": {
        "endpoints": ["http://127.0.0.1:1"],
        "chain_id": 1,
        "market": MARKET,
        "start_block": 0,
    }
}


def _fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every field with its default, tables among them."""
    for name, field in model.model_fields.items():
        yield prefix + name, field.get_default(call_default_factory=True)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")


def _leaves(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _tables(table: dict[str, Any]) -> set[str]:
    return {name for name, value in table.items() if isinstance(value, dict)}


def _uncommented(line: str) -> str:
    name, equals, _ = line.removeprefix("# ").partition(" = ")
    return line.removeprefix("# ") if equals and name.isidentifier() else line


def _send(devnet: Devnet, account: Any, call: Any) -> None:
    nonce = int(devnet.chain.request("eth_getTransactionCount", account.address, "latest"), 16)
    signed = account.sign_transaction(
        {
            "chainId": devnet.chain_id,
            "nonce": nonce,
            "to": call.to,
            "data": call.data,
            "value": call.value,
            "gas": 1_000_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9,
        }
    )
    sent = devnet.chain.request("eth_sendRawTransaction", f"0x{signed.raw_transaction.hex()}")
    devnet.chain.mine()
    assert devnet.chain.request("eth_getTransactionReceipt", sent)["status"] == "0x1"
