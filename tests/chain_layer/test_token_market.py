"""A market whose money is a token refuses the agent's stakes: the agent says so, and ends."""

from typing import Any

import pytest

from scripts.deploy_settings import read_deploy_settings
from tests.chain_layer.proxy import proxy_before
from tests.chain_layer.yard import Yard
from trainyard.chain.client import MarketClient
from worker_agent.agent import Agent, refuse_token
from worker_agent.checkup import AgentCheckup, _market
from worker_agent.settings import Settings, TokenMarketError

_START = {"start_block": 0}


@pytest.fixture
def token_market(yard: Yard) -> str:
    disputes = yard._create("MarketDisputes")
    settlement = yard._create("MarketSettlement", disputes)
    params = read_deploy_settings({}).params.as_tuple()
    # Any contract will do for its token: the market asks it nothing before money moves.
    return yard._create("TrainingMarket", disputes, yard.people[0], settlement, params)


def test_token_is_refused_at_the_start_with_what_to_do(yard: Yard, token_market: str) -> None:
    refuse_token(MarketClient(yard.endpoints(), yard.market))
    client = MarketClient(yard.endpoints(), token_market)

    with pytest.raises(TokenMarketError, match=f"the market {token_market} holds the token 0x"):
        refuse_token(client)


def test_agent_asks_once_and_before_it_looks_at_anything(yard: Yard, token_market: str) -> None:
    class LookedError(Exception):
        pass

    class Nothing:
        def __init__(self) -> None:
            self.looks = 0

        def collect(self) -> None:
            pass

        def look(self) -> None:
            self.looks += 1
            raise LookedError

    def agent_of(market: str, url: str) -> Any:
        agent: Any = Agent.__new__(Agent)
        chain = {"endpoints": [url], "chain_id": yard.chain_id, "market": market, **_START}
        agent.settings = Settings.model_validate({"chain": chain})
        agent.endpoints, agent._is_native = yard.endpoints(url), False
        agent.site = agent.watcher = Nothing()
        return agent

    refused = agent_of(token_market, yard.url)
    for _ in range(2):
        with pytest.raises(TokenMarketError):
            refused.step()
    assert refused.watcher.looks == 0

    with proxy_before(yard.url) as proxy:
        taken = agent_of(yard.market, proxy.url)
        for _ in range(2):
            with pytest.raises(LookedError):
                taken.step()
        assert (taken.watcher.looks, proxy.questions("eth_call")) == (2, 1)


def test_doctor_says_so_as_a_problem(yard: Yard, token_market: str) -> None:
    def found(market: str) -> list[str]:
        chain = {"endpoints": [yard.url], "chain_id": yard.chain_id, "market": market, **_START}
        checkup = AgentCheckup()
        _market(checkup, Settings.model_validate({"chain": chain}), [yard.url], yard.people[1])
        return [one.what for one in checkup.problems if one.needed]

    assert found(yard.market) == []
    [problem] = found(token_market)
    assert "this agent puts down only the chain's own currency" in problem
