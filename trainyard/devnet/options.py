"""What a devnet is to be made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainyard.protocol.market import Params

ChainTool = Literal["ganache", "anvil"]
ContentKind = Literal["embedded", "kubo"]

ETHER = 10**18
# Known to wallets as that of a development chain.
CHAIN_ID = 1337

# As short as the market lets them be, so that a task is settled within seconds.
DEVNET_PARAMS = Params(
    seat_bond=ETHER // 10,
    # Of the machine's owner alone, so nobody runs away with it; yet long enough to be seen.
    unbond_for=60,
    fault_bps=2_000,
    finder_bps=5_000,
    requester_bps=3_000,
    referees=3,
    escalation=5,
    draw_delay=1,
    min_window=1,
)


@dataclass(frozen=True, slots=True)
class Options:
    chain: ChainTool = "ganache"
    content: ContentKind = "embedded"
    # Daemons that are started with the devnet, each with a worker's account.
    agents: int = 0
    # Between two blocks; zero for one block per transaction, and none without.
    block_time_s: int = 1
    workers: int = 4
    # As many as both committees of referees have seats, so that any dispute can be decided.
    auditors: int = DEVNET_PARAMS.referees + DEVNET_PARAMS.escalation
    # What differs from an agent's defaults, as `trainyard worker init --set` takes it: windows are
    # short here, and every agent is ready to audit.
    agent_settings: Sequence[str] = (
        "chain.poll_s=0.5",
        # Less than two blocks, and what is said at the last moment comes too late.
        "chain.margin_s=3",
        "chain.confirmations=2",
        f"policy.bond={DEVNET_PARAMS.seat_bond}",
    )
    balance_wei: int = 10_000 * ETHER
    # Whether the web dapp is started with it.
    dapp: bool = False

    @property
    def funded_workers(self) -> int:
        return max(self.workers, self.agents)
