"""Settings and record of a deployment."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from scripts.deploy_settings import DeploySettingsError, read_deploy_settings
from scripts.deployment_record import DeploymentRecord, abi_sha256, write_record
from trainyard.chain import load_artifact
from trainyard.protocol.market import NATIVE_CURRENCY, Params, solidity_name

TOKEN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def test_defaults_suit_a_development_chain() -> None:
    settings = read_deploy_settings({})

    assert settings.currency == NATIVE_CURRENCY
    assert settings.owner is None
    assert settings.account is None


def test_parameters_are_in_the_order_of_the_constructor() -> None:
    abi = load_artifact("TrainingMarket").abi
    [constructor] = [entry for entry in abi if entry["type"] == "constructor"]

    members = [member["name"] for member in constructor["inputs"][-1]["components"]]
    assert [solidity_name(field.name) for field in fields(Params)] == members


@pytest.mark.parametrize("text", [TOKEN, TOKEN.lower()])
def test_currency_may_be_a_token(text: str) -> None:
    assert read_deploy_settings({"TRAINYARD_CURRENCY": text}).currency == TOKEN


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TRAINYARD_CURRENCY", "dollars", "TRAINYARD_CURRENCY: 'dollars' is no address"),
        ("TRAINYARD_OWNER", TOKEN.replace("5aA", "5AA"), "TRAINYARD_OWNER: .* wrong checksum"),
        ("TRAINYARD_PARAMS", "nowhere.toml", "TRAINYARD_PARAMS: there is no file nowhere.toml"),
    ],
)
def test_bad_setting_is_named(variable: str, value: str, message: str) -> None:
    with pytest.raises(DeploySettingsError, match=message):
        read_deploy_settings({variable: value})


def test_parameter_problems_are_listed_together(tmp_path: Path) -> None:
    path = tmp_path / "params.toml"
    path.write_text("referees = -3\ncolour = 1\n")

    with pytest.raises(DeploySettingsError) as error:
        read_deploy_settings({"TRAINYARD_PARAMS": str(path)})

    assert "seat_bond is missing" in str(error.value)
    assert "colour is unknown" in str(error.value)
    assert "referees must be a whole number" in str(error.value)


def test_abi_hash_ignores_the_order_of_keys() -> None:
    one = [{"type": "function", "name": "post"}]
    other = [{"name": "post", "type": "function"}]

    assert abi_sha256(one) == abi_sha256(other)
    assert abi_sha256(one) != abi_sha256([{"type": "event", "name": "post"}])


def test_record_is_named_after_its_chain(tmp_path: Path) -> None:
    record = DeploymentRecord(
        chain_id=1337,
        address=TOKEN,
        block=2,
        abi_sha256="00" * 32,
        constructor_arguments={"currency": NATIVE_CURRENCY},
        parts={"market": TOKEN},
        transactions={"market": "0x01"},
    )

    path = write_record(record, tmp_path)

    assert path.name == "1337.json"
    assert json.loads(path.read_text())["constructor_arguments"] == {"currency": NATIVE_CURRENCY}
