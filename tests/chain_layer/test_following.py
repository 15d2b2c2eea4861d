"""A task that its requester follows, while the chain is reorganised under it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chain_layer.yard import TERMS, Yard
from trainyard.content.settings import ContentSettings
from trainyard.sdk import following
from trainyard.sdk.errors import TaskFailedError
from trainyard.sdk.following import Following, Known
from trainyard.sdk.market import Market, Place, PlayKey

OTHERS = replace(TERMS, manifest=b"o" * 32)


@pytest.fixture
def market(yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    """That of a requester whose key is at hand."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Each look sees to what was sent, and nobody waits for a node that may be behind.
    monkeypatch.setattr(following, "_STEP_S", 0.0)
    monkeypatch.setattr(following, "_UNSEEN_S", 0.0)
    content = ContentSettings(store=tmp_path / "store", kubo=None)
    place = Place((yard.url,), yard.chain_id, yard.market, yard.start, content)
    with Market(place, PlayKey(yard.purse("requester"))) as market:
        yield market


def posted(market: Market) -> Known:
    transaction = market.send("post", market.calls.post(TERMS, value=TERMS.escrow))
    return Known(TERMS.manifest, market.account.address, transaction)


def test_a_post_that_a_reorg_swaps_with_anothers_is_followed_under_its_new_number(
    yard: Yard, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_UNSEEN_S", 60.0)
    before, said = yard.anvil.request("evm_snapshot"), list[str]()
    with closing(Following(market, 1, posted(market), say=said.append)) as one:
        first = one.look()
        yard.anvil.request("evm_revert", before)
        yard.send(yard.calls.post(OTHERS, value=OTHERS.escrow))

        # Found to be gone, and in the next look sent again.
        assert [one.look(), one.look()] == [None, None]
        second = one.look()

        assert one.book.tasks[1].terms.manifest == OTHERS.manifest
        assert (one.number, said) == (2, ["the chain was reorganised: task 1 is 2 now"])
    assert first is not None
    assert second is not None
    assert first.task.terms.manifest == second.task.terms.manifest == TERMS.manifest
    assert second.sentences


def test_somebody_elses_task_is_never_taken_for_one_that_is_gone(
    yard: Yard, market: Market
) -> None:
    """Where no key is at hand to post it again, as for who has only its number."""
    before, known = yard.anvil.request("evm_snapshot"), posted(market)
    with (
        Market(market.place) as keyless,
        closing(Following(keyless, 1, replace(known, transaction=None))) as one,
    ):
        assert one.look() is not None
        yard.anvil.request("evm_revert", before)
        yard.send(yard.calls.post(OTHERS, value=OTHERS.escrow))

        with pytest.raises(TaskFailedError, match="task 1 is another task since the chain was"):
            one.look()


def test_a_post_that_had_its_confirmations_is_sent_again_too(yard: Yard, market: Market) -> None:
    before = yard.anvil.request("evm_snapshot")
    with closing(Following(market, 1, posted(market))) as one:
        yard.anvil.mine(20)
        assert one.look() is not None
        yard.anvil.request("evm_revert", before)
        yard.anvil.mine()

        with pytest.raises(TaskFailedError, match="task 1 is not there"):
            one.look()
        found = one.look()

    assert found is not None
    assert found.task.requester == market.account.address
