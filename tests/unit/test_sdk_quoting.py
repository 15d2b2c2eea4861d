"""What a quote warns of."""

from types import SimpleNamespace
from typing import cast

import pytest

import tests.quiet_web3  # noqa: F401
from tests.engine.nets import manifest_of
from trainyard.devnet.options import DEVNET_PARAMS
from trainyard.engine.rehearsing import Rehearsal
from trainyard.protocol.offering import Supply, Wish, terms_for
from trainyard.sdk import quoting
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer
from trainyard.sdk.quoting import Quote, quote_for

MANIFEST = manifest_of("mlp", until={"steps": 100})
SUPPLY = Supply(bytes(32), workers=9, free=9, auditors=9)
MARKET = cast(Market, SimpleNamespace(content=None, confinement=lambda: None))


@pytest.mark.parametrize(
    ("train_for", "with_rehearsal", "is_warned"),
    [(199, True, True), (200, True, False), (199, False, False)],
)
def test_training_that_takes_longer_than_workers_have_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, train_for: int, with_rehearsal: bool, is_warned: bool
) -> None:
    """Two seconds a step, and a hundred of them."""
    monkeypatch.setattr(quoting, "rehearse", lambda *_: Rehearsal(2.0, 0.5))
    terms = terms_for(MANIFEST, SUPPLY, DEVNET_PARAMS, Wish(train_for=train_for))

    found: Quote = quote_for(
        MARKET, Offer(MANIFEST, terms, SUPPLY, DEVNET_PARAMS), with_rehearsal=with_rehearsal
    )

    expected = "training takes about 200 s as here, and workers have 199 s: give a later deadline"
    assert [one for one in found.warnings if one.startswith(expected)] == list(found.warnings)
    assert bool(found.warnings) is is_warned
