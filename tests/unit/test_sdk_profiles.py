"""Markets by name, and what is asked of who names one."""

from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

import tests.quiet_web3  # noqa: F401
from trainyard.chain.keystore import KeystoreError, create_keystore
from trainyard.sdk.connecting import connect
from trainyard.sdk.errors import NoMarketError
from trainyard.sdk.profiles import (
    Config,
    Profile,
    config_file,
    default_keystore,
    read_config,
    write_config,
)

MARKET = "0x" + "ab" * 20
PROFILE = Profile(
    endpoints=("http://127.0.0.1:1",),
    market=MARKET,
    chain_id=5,
    gateways=("http://127.0.0.1:2", "http://127.0.0.1:3"),
    keystore=Path("/keys/a b.json"),
)


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_without_a_file_nothing_is_set() -> None:
    assert read_config() == Config()


def test_a_config_comes_back_as_it_was_and_is_nobody_elses() -> None:
    config = Config(default="näh", profiles={"näh": PROFILE, 'with "quotes"': PROFILE})

    write_config(config)

    assert read_config() == config
    assert config_file().stat().st_mode & 0o077 == 0


def test_a_config_with_a_slip_names_it() -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text('[profiles.a]\nendpoints = ["http://x"]\nmarket = "0x12"\n')

    with pytest.raises(NoMarketError, match=r"config.toml: profiles.a.market: "):
        read_config()


def test_a_key_has_no_place_in_a_config() -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text(
        f'[profiles.a]\nendpoints = ["http://x"]\nmarket = "{MARKET}"\nkey = "0x1"\n'
    )

    with pytest.raises(NoMarketError, match=r"profiles.a.key"):
        read_config()


def test_an_unknown_profile_is_refused_with_those_that_there_are() -> None:
    write_config(Config(profiles={"one": PROFILE}))

    with pytest.raises(NoMarketError, match=r"no profile 'two'.*there are: one.*config set two"):
        connect("two")


def test_an_endpoint_needs_the_market_on_it() -> None:
    with pytest.raises(NoMarketError, match="which market"):
        connect("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"market": "0x12"}, "^market: '0x12' will not do .*; give the market's address"),
        ({"start_block": -1}, "^start_block: -1 will not do .*; give the block of the market's"),
        ({"chain_id": 0}, "^chain_id: 0 will not do"),
        ({"gateways": [7]}, "^gateways: 7 will not do"),
    ],
)
def test_what_is_wrong_of_a_market_is_named_with_what_to_give(
    given: dict[str, Any], why: str
) -> None:
    usual: dict[str, Any] = {"market": MARKET, "chain_id": 5}

    with pytest.raises(NoMarketError, match=why):
        connect("http://127.0.0.1:1", **usual | given)


def test_a_variable_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_TIMEOUT_S", "soon")

    with pytest.raises(NoMarketError, match=r"TRAINYARD_TIMEOUT_S: .*valid number.*environment"):
        connect("http://127.0.0.1:1", market=MARKET, chain_id=5)


def test_a_profile_is_not_mixed_with_an_address() -> None:
    with pytest.raises(NoMarketError, match="go with the address of an endpoint"):
        connect("one", market=MARKET)


def test_a_market_by_a_profile_opens_no_key_before_it_is_needed() -> None:
    write_config(Config(default="one", profiles={"one": PROFILE}))

    with connect() as market:
        assert market.address == MARKET
        assert market.place.chain_id == 5
        assert market.place.content.gateway_addresses == list(PROFILE.gateways)
        assert not market.place.is_devnet
        assert not market.is_unlocked


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with a key and its password, and a password that is another's."""
    create_keystore(tmp_path / "key", bytes.fromhex("11" * 32), "right", work=2)
    for name in ("right", "wrong"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("kept", ["wrong", None])
def test_a_password_file_that_is_given_opens_the_key_of_a_profile(
    keys: Path, kept: str | None
) -> None:
    said = {"keystore": keys / "key", "password_file": kept and keys / kept}
    write_config(Config(profiles={"one": PROFILE.model_copy(update=said)}))

    with connect("one", password_file=keys / "right") as market:
        assert market.account.address == Account.from_key("11" * 32).address
    with connect("one") as market, pytest.raises(KeystoreError, match="password"):
        _ = market.account


def test_a_password_file_opens_the_usual_key(keys: Path) -> None:
    default_keystore().parent.mkdir(parents=True)
    (keys / "key").rename(default_keystore())

    with connect(
        "http://127.0.0.1:1", market=MARKET, chain_id=5, password_file=str(keys / "right")
    ) as market:
        assert market.account.address == Account.from_key("11" * 32).address


def test_the_key_of_a_devnet_has_no_password(keys: Path) -> None:
    with pytest.raises(NoMarketError, match=r"password_file: .* give the keystore that it opens"):
        connect("devnet", password_file=keys / "right")
