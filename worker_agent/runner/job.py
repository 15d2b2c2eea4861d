"""What a runner is told. The agent writes it anew when somebody comes or goes."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from trainyard.protocol.cards import PeerCard
from trainyard.protocol.commitments import Market


class RunnerJob(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    task: int
    # Of the task, by its digest: the folder of the number may have had another one.
    manifest: str
    slot: int
    me: str
    chain_id: int
    market: str
    # Who holds each slot now, and the cards of those that could be read.
    holders: dict[int, str]
    cards: dict[int, str]
    # For how long it may compute, from its start on.
    wall_s: float | None = None

    @classmethod
    def read(cls, path: Path) -> "RunnerJob":
        return cls.model_validate_json(path.read_bytes())

    def says_the_same_as(self, other: "RunnerJob") -> bool:
        """Whether a runner that knows this one has to know nothing more."""
        return self.model_copy(update={"wall_s": other.wall_s}) == other

    def peer_cards(self) -> dict[int, PeerCard]:
        market = Market(self.chain_id, self.market)
        return {
            slot: PeerCard.parse(
                text.encode(), market=market, task=self.task, worker=self.holders[slot]
            )
            for slot, text in self.cards.items()
        }
