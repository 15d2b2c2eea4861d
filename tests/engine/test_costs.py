"""What workers are said to send is what they send."""

import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engine.nets import manifest_of
from tests.engine.test_async import Here
from trainyard.engine.asynchronous import AsyncStepper
from trainyard.engine.costs import step_bytes
from trainyard.engine.pieces import Piece
from trainyard.engine.program import build
from trainyard.engine.stepping import Stepper
from trainyard.protocol.manifest import Manifest


def frozen(net: str, layer: int, **training: Any) -> Manifest:
    """With a layer that is not trained, if it is one; none of what it has is sent."""
    document = json.loads(manifest_of(net, **training).canonical)
    if layer >= 0:
        document["model"]["layers"][layer]["trainable"] = False
    return Manifest.of(document)


NETS = [("mlp", -1), ("batch_norm", -1), ("mlp", 2), ("batch_norm", 2)]


@pytest.mark.parametrize(("net", "still"), NETS)
def test_bytes_of_a_step_are_those_of_the_vector(net: str, still: int) -> None:
    manifest = frozen(net, still, workers=3)
    stepper = Stepper(build(manifest), batch=24, workers=3)
    images, ones = np.zeros((8, 12, 12, 1), np.uint8), np.ones(8, np.float32)
    sent = []

    def exchange(vector: Any) -> Any:
        # Called once, while the step is made into a function: it has a length and no values yet.
        sent.append(vector.shape[0] * vector.dtype.size)
        return tf.stack([vector] * 3)

    stepper.step_as(1, 0, Piece((images,), np.zeros(8, np.int64), ones), exchange)

    assert [2 * size for size in sent] == [step_bytes(manifest)]


@pytest.mark.parametrize(("net", "still"), NETS)
def test_bytes_of_an_async_step_are_those_of_weights_and_vector(net: str, still: int) -> None:
    document = json.loads(frozen(net, still, workers=3).canonical)
    document["training"]["mode"] = "async"
    document["data"]["test"] = document["data"]["train"]
    manifest, farm = Manifest.of(document), Here()
    stepper = AsyncStepper(build(manifest), farm, batch=24)
    images, ones = np.zeros((24, 12, 12, 1), np.uint8), np.ones(24, np.float32)
    piece = Piece((images,), np.zeros(24, np.int64), ones)

    vector = stepper.part(*stepper.arguments(0, piece))

    sent = [one.numpy().nbytes for one in (*farm.kept, vector)]
    assert sum(sent) == step_bytes(manifest)
