"""Predictions by the market for records of Spark's, back in Spark in their order."""

import keras
import numpy as np
import pytest

from tests.spark.conftest import World
from tests.spark.records import point
from trainyard.sdk.errors import RefusedError
from trainyard.spark import TFDataset, TFPredictor

RECORDS, BATCH = 100, 16


def test_predictions_come_back_in_the_order_of_the_records(world: World) -> None:
    numbers = world.context.parallelize(range(RECORDS), 5)
    dataset = TFDataset.from_rdd(
        numbers.map(lambda number: [point(number)["point"]]),
        ["point"],
        [[4]],
        ["float32"],
        BATCH,
        market=world.market,
    )
    (given,) = dataset.tensors
    keras.utils.set_random_seed(7)
    model = keras.Model(given, keras.layers.Dense(3, activation="tanh")(given))

    rdd = TFPredictor(model, dataset, market=world.market, workers=2, verbose=0).predict()

    found = np.stack(rdd.collect())
    expected = model.predict(np.stack([point(number)["point"] for number in range(RECORDS)]))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    # So that it goes with what it was computed from.
    assert rdd.count() == len(dataset)


def test_records_that_the_model_does_not_read_are_refused(world: World) -> None:
    dataset = TFDataset.from_rdd(
        world.context.parallelize(range(8), 2).map(point),
        ["point", "side"],
        [[4], []],
        ["float32", "int64"],
        market=world.market,
    )
    model = keras.Sequential([keras.Input((5,), name="other"), keras.layers.Dense(1)])

    with pytest.raises(RefusedError, match="the model reads 'other'; the data has 'point', 'side'"):
        TFPredictor(model, dataset, market=world.market, verbose=0).predict()
