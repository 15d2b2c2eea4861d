"""Deploys the market: `brownie run scripts/deploy.py --network <name>`.

Settings come from the environment, see scripts/deploy_settings.py.
"""

import os
import sys
from dataclasses import asdict
from typing import Any

from brownie import (
    MarketDisputes,
    MarketSettlement,
    TrainingMarket,
    accounts,
    interface,
    network,
    web3,
)

from scripts.deploy_settings import DeploySettings, DeploySettingsError, read_deploy_settings
from scripts.deployment_record import DeploymentRecord, abi_sha256, write_record


def deploy(settings: DeploySettings, deployer: Any) -> DeploymentRecord:
    """Deploy the market's parts, each before the one that delegates to it."""
    disputes = MarketDisputes.deploy({"from": deployer})
    settlement = MarketSettlement.deploy(disputes, {"from": deployer})
    owner = settings.owner or deployer.address
    market = TrainingMarket.deploy(
        settings.currency, owner, settlement, settings.params.as_tuple(), {"from": deployer}
    )
    parts = {"market": market, "settlement": settlement, "disputes": disputes}
    return DeploymentRecord(
        chain_id=web3.eth.chain_id,
        address=market.address,
        block=market.tx.block_number,
        abi_sha256=abi_sha256(interface.ITrainingMarket.abi),
        constructor_arguments={
            "currency": settings.currency,
            "owner": owner,
            "settlement": settlement.address,
            "params": asdict(settings.params),
        },
        parts={name: part.address for name, part in parts.items()},
        transactions={name: part.tx.txid for name, part in parts.items()},
    )


def choose_account(settings: DeploySettings) -> Any:
    if settings.account is not None:
        return accounts.load(settings.account)
    if network.show_active() in ("ganache-cli", "anvil", "development"):
        return accounts[0]
    raise DeploySettingsError(
        "TRAINYARD_ACCOUNT: name the account that deploys; 'brownie accounts list' shows yours"
    )


def main() -> None:
    try:
        settings = read_deploy_settings(os.environ)
        record = deploy(settings, choose_account(settings))
    except DeploySettingsError as error:
        sys.exit(str(error))
    path = write_record(record)
    print(f"market {record.address} on chain {record.chain_id}, recorded in {path.name}")
