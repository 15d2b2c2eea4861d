"""Gas for what is mined otherwise than it was tried out: whoever comes last does more."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account.signers.local import LocalAccount

from tests.chain_layer.yard import ETHER, TERMS, Yard
from trainyard.chain.client import MarketClient
from trainyard.chain.outbox import Outbox
from trainyard.protocol.market import Policy, TaskState

WORKERS = 3
JOINT = replace(TERMS, slots=WORKERS, audits=1, audit_fee=ETHER // 100, segments=8)


@pytest.fixture
def people(yard: Yard) -> list[LocalAccount]:
    return [yard.purse(f"worker {number}") for number in range(WORKERS)]


@pytest.fixture
def boxes(yard: Yard, people: list[LocalAccount], tmp_path: Path) -> Iterator[list[Outbox]]:
    with ExitStack() as stack:
        found = []
        for number, who in enumerate(people):
            (tmp_path / str(number)).mkdir()
            store = yard.store(tmp_path / str(number))
            stack.callback(store.close)
            found.append(Outbox(yard.endpoints(), store, who, confirmations=1))
        yield found


@pytest.mark.parametrize(
    ("policy", "quorum", "after"),
    [(Policy.AUDIT, 1, TaskState.SUBMITTED), (Policy.REPLICATE, 2, TaskState.REVEALING)],
)
def test_whoever_answers_last_in_one_block_has_gas_enough(
    yard: Yard, boxes: list[Outbox], policy: Policy, quorum: int, after: TaskState
) -> None:
    """All are tried out before any is mined, so each counts on not being the last."""
    is_audit = policy is Policy.AUDIT
    given = JOINT if is_audit else TERMS
    terms = replace(given, slots=WORKERS, policy=policy, quorum=quorum)
    yard.send(yard.calls.post(terms, value=terms.escrow))
    for slot, box in enumerate(boxes):
        box.submit("register", yard.calls.register(b"p" * 32, terms.env_class, 0))
        yard.anvil.mine()
        box.submit("join", yard.calls.join(1, bytes([slot + 1]) * 32, value=terms.stake))
        yard.anvil.mine()
        box.step()
    yard.anvil.request("evm_setAutomine", False)
    for slot, box in enumerate(boxes):
        answer = yard.calls.commit(1, slot, bytes([slot + 1]) * 32)
        if is_audit:
            answer = yard.calls.submit(1, slot, b"r" * 32, b"t" * 32)
        box.submit("answer", answer)
        # A node may try things out without what others have sent, or not have heard of it yet.
        yard.anvil.request("anvil_dropAllTransactions")
    for box in boxes:
        box.step()
    yard.anvil.mine()

    assert [[(one.key, one.why) for one in box.step()] for box in boxes] == [[("answer", "")]] * 3
    task = MarketClient(yard.endpoints(), yard.market).task(1)
    assert task is not None
    assert task.state is after
