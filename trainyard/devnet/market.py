"""The market on the devnet's chain, from the contracts that the package ships."""

from typing import Any

from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address
from web3 import Web3

from trainyard.chain import load_artifact
from trainyard.chain.fees import GWEI
from trainyard.devnet.chain import Chain
from trainyard.devnet.errors import DevnetError
from trainyard.devnet.options import CHAIN_ID
from trainyard.devnet.record import Market
from trainyard.protocol.market import NATIVE_CURRENCY, Params

# Each takes less.
_GAS = 10_000_000


def deploy_market(chain: Chain, owner: LocalAccount, params: Params) -> Market:
    """Deploy the market's parts, each before the one that delegates to it."""
    disputes = _create(chain, owner, "MarketDisputes")
    settlement = _create(chain, owner, "MarketSettlement", _address(disputes))
    made = _create(
        chain,
        owner,
        "TrainingMarket",
        NATIVE_CURRENCY,
        owner.address,
        _address(settlement),
        params.as_tuple(),
    )
    return Market(_address(made), int(made["blockNumber"], 16), made["blockHash"], params)


def is_there(chain: Chain, market: Market) -> bool:
    """Whether this is the chain on which the market was deployed."""
    block = chain.request("eth_getBlockByNumber", hex(market.start_block), False)
    return block is not None and block["hash"] == market.block_hash


def _create(chain: Chain, owner: LocalAccount, name: str, *arguments: Any) -> dict[str, Any]:
    """Create a contract; its receipt."""
    artifact = load_artifact(name)
    contract = Web3().eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
    signed = owner.sign_transaction(
        {
            "type": 2,
            "chainId": CHAIN_ID,
            "nonce": int(chain.request("eth_getTransactionCount", owner.address, "latest"), 16),
            "data": contract.constructor(*arguments).data_in_transaction,
            "value": 0,
            "gas": _GAS,
            "maxFeePerGas": 20 * GWEI,
            "maxPriorityFeePerGas": GWEI,
        }
    )
    sent = chain.request("eth_sendRawTransaction", f"0x{signed.raw_transaction.hex()}")
    chain.mine()
    receipt: dict[str, Any] | None = chain.request("eth_getTransactionReceipt", sent)
    if receipt is None or int(receipt["status"], 16) != 1:
        raise DevnetError(f"{name} could not be deployed: see {chain.place.chain_log}")
    return receipt


def _address(receipt: dict[str, Any]) -> str:
    return to_checksum_address(receipt["contractAddress"])
