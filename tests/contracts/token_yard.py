"""A market whose currency is a token that can misbehave."""

from collections.abc import Sequence
from typing import Any

from brownie import OddToken

from tests.contracts.yard import CREDIT, Yard, deploy_market


class TokenYard(Yard):
    def __init__(self, people: Sequence[Any]) -> None:
        self.token = OddToken.deploy({"from": people[0]})
        super().__init__(deploy_market(people[0], self.token.address), people)

    def supply(self, *people: Any, amount: int = CREDIT) -> None:
        """Give tokens to `people`, who let the market take them."""
        for person in people:
            self.token.mint(person, amount, {"from": self.owner})
            self.token.approve(self.market, amount, {"from": person})

    def fund(self, *people: Any, amount: int = CREDIT) -> None:
        self.supply(*people, amount=amount)
        for person in people:
            self.market.deposit(amount, {"from": person})

    def holdings(self, who: Any) -> int:
        return int(self.token.balanceOf(who))
