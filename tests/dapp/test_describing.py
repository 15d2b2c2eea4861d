"""What a manifest comes to in a row of the market."""

from typing import Any

import pytest

from dapp.posting.describing import summary_of
from dapp.posting.examples import examples
from trainyard.protocol.manifest import Manifest


@pytest.mark.parametrize(
    ("until", "batch", "epochs"), [({"epochs": 12}, 64, 12.0), ({"steps": 100}, 50, 5000 / 540)]
)
def test_epochs_are_those_asked_for_though_the_last_batch_goes_beyond(
    until: dict[str, Any], batch: int, epochs: float
) -> None:
    document = examples().items[0].manifest
    document["data"]["train"]["records"] = 540
    training = document["training"] | {"until": until, "batch": batch, "steps_per_segment": 1}
    training["validation"] = None
    assert summary_of(Manifest.of(document | {"training": training})).epochs == epochs
