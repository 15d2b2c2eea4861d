"""Whether the ten thousandth task of a market costs what the tenth did."""

from functools import partial

from benchmarks.anvil import Anvil
from benchmarks.gas_figures import EARLY, LATE, Growth, Life, typical
from benchmarks.lives import LifeError, LiveMarket, salt_of
from trainyard.protocol.market import Policy

# Anvil hashes the whole state per block: few blocks, but not so few that they choke it.
_LIVES_PER_BLOCK = 1_000
# Audit lives that are measured after the Replicate life: draws are chance.
_AUDIT_LIVES = 3


def measure_growth(anvil: Anvil) -> dict[str, Growth]:
    """Take one market to its ten thousandth task; all but the first live to their end."""
    market = LiveMarket(anvil)
    while market.count < EARLY - 1:
        market.replicate(1) if market.count % 2 else market.audit(1)
    early = _lives_from(market, EARLY)
    play_replicate_lives(market, LATE - 1 - market.count)
    late = _lives_from(market, LATE)
    return {name: Growth(early[name], late[name]) for name in early}


def _lives_from(market: LiveMarket, first: int) -> dict[str, Life]:
    """The life of task `first` under Replicate, and of those after it under Audit."""
    assert market.count == first - 1
    replicate = market.life(partial(market.replicate, 1))
    audits = [market.life(partial(market.audit, 1)) for _ in range(_AUDIT_LIVES)]
    return {"Replicate": replicate, "Audit": typical(audits)}


def play_replicate_lives(market: LiveMarket, count: int) -> None:
    """Whole lives of one-worker tasks, many in step, each step in one block."""
    requester, worker = market.requester, market.workers[0]
    claim, salt = (market.claim.result, market.claim.root), salt_of(market.workers[0])
    encode, commitment = market.encode, market.protocol.claim_commitment
    offer = encode("post", market.terms(Policy.REPLICATE, 1).as_tuple())
    before, done = market.settled(worker), 0
    while done < count:
        first = market.count + 1
        tasks = range(first, first + min(_LIVES_PER_BLOCK, count - done))
        steps = [
            [(requester, offer) for _ in tasks],
            [(worker, encode("join", task, salt, [])) for task in tasks],
            [
                (worker, encode("commit", task, 0, commitment(task, worker, salt, *claim)))
                for task in tasks
            ],
            [(worker, encode("reveal", task, 0, salt, *claim)) for task in tasks],
            [(requester, encode("settle", task)) for task in tasks],
        ]
        for step in steps:
            market.call_in_one_block(step)
        done += len(tasks)
    settled = market.settled(worker) - before
    if settled != count:
        raise LifeError(f"{settled} of {count} tasks were settled")
