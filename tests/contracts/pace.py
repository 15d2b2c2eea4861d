"""Lets the tests run at the chain's pace: what brownie repeats at each call is done once."""

import gc

import requests
from brownie import web3
from web3 import HTTPProvider

_TIMEOUT_S = 30


def keep_pace() -> None:
    """To be called once brownie has connected."""
    session = requests.Session()
    # A chain on loopback is behind no proxy, so none is looked for.
    session.trust_env = False
    web3.provider = HTTPProvider(
        web3.provider.endpoint_uri,
        {"timeout": _TIMEOUT_S},
        session=session,
        # Asked at each call otherwise, to check each against it.
        cache_allowed_requests=True,
        cacheable_requests={"eth_chainId"},
    )
    # Each revert of the chain collects garbage, and would walk all of brownie and web3 for it.
    gc.collect()
    gc.freeze()
