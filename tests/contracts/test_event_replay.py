"""The market can be rebuilt from its events alone."""

from itertools import groupby

import pytest
from brownie import TrainingMarket, chain, interface

from tests.contracts.lives import LIVES
from tests.contracts.witness import Witness, views_of, views_touched
from trainyard.protocol.ledger import Book, apply
from trainyard.protocol.market import BURN_ADDRESS

# In the ABI through OpenZeppelin's EIP712, and never emitted: the market's domain does not change.
NEVER_EMITTED = {"EIP712DomainChanged"}


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_every_block_of_a_life_is_rebuilt_from_events(yard, life):
    """Rule V6: what an event names is as stored after its block, and in the end all views are."""
    witness = Witness(yard.market.address)
    begin = chain.height
    life.run(yard)

    book, seen = Book(), set()
    for block, found in groupby(witness.events(0), key=lambda each: each[0]):
        events = [event for _, event in found]
        for event in events:
            apply(book, event)
            seen.add(event.name)
        if block > begin:
            witness.compare(book, set().union(*map(views_touched, events)), block)
    witness.compare(book, views_of(book, [*yard.by_address, BURN_ADDRESS]))
    assert life.tells <= seen


def test_the_lives_tell_of_every_event():
    """Rule V6: what is never emitted in a test was never compared."""
    abi = [*TrainingMarket.abi, *interface.ITrainingMarket.abi]
    emitted = {entry["name"] for entry in abi if entry["type"] == "event"}

    assert set().union(*(life.tells for life in LIVES)) == emitted - NEVER_EMITTED
