"""The deployment script on a development chain."""

import pytest

from scripts.deploy import choose_account, deploy
from scripts.deploy_settings import read_deploy_settings
from scripts.deployment_record import abi_sha256
from trainyard.chain import load_artifact


@pytest.fixture
def record(fn_isolation):
    settings = read_deploy_settings({})
    return deploy(settings, choose_account(settings))


def test_market_runs_with_the_shipped_parameters(record, accounts, interface):
    market = interface.ITrainingMarket(record.address)

    assert market.currency() == record.constructor_arguments["currency"]
    assert record.constructor_arguments["owner"] == accounts[0]


def test_record_tells_how_to_reach_the_market(record, web3):
    receipt = web3.eth.get_transaction_receipt(record.transactions["market"])

    assert record.chain_id == 1337
    assert record.address == record.parts["market"] == receipt["contractAddress"]
    assert record.block == receipt["blockNumber"]
    assert record.abi_sha256 == abi_sha256(list(load_artifact("ITrainingMarket").abi))
