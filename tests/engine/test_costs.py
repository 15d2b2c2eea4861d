"""What workers are said to send is what they send."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engine.nets import manifest_of
from trainyard.engine.costs import step_bytes
from trainyard.engine.pieces import Piece
from trainyard.engine.program import build
from trainyard.engine.stepping import Stepper


@pytest.mark.parametrize("net", ["mlp", "batch_norm"])
def test_bytes_of_a_step_are_those_of_the_vector(net: str) -> None:
    manifest = manifest_of(net, workers=3)
    stepper = Stepper(build(manifest), batch=24, workers=3)
    images, ones = np.zeros((8, 12, 12, 1), np.uint8), np.ones(8, np.float32)
    sent = []

    def exchange(vector: Any) -> Any:
        sent.append(len(vector.numpy().tobytes()))
        return tf.stack([vector] * 3)

    stepper.step_as(1, 0, Piece((images,), np.zeros(8, np.int64), ones), exchange)

    assert [2 * size for size in sent] == [step_bytes(manifest)]
