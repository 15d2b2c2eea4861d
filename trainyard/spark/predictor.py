"""`TFPredictor`: what a model makes of the records of a data set, as an RDD in their order."""

from typing import TYPE_CHECKING, Any, Unpack

from trainyard.sdk.market import Market
from trainyard.sdk.predicting import PredictWishes, predict
from trainyard.sdk.showing import Verbose
from trainyard.spark.context import market_or_found

if TYPE_CHECKING:
    from pyspark import RDD

    from trainyard.spark.dataset import TFDataset


class TFPredictor:
    """Predicts on the market, by as many `workers` as are said, and verified like training.

    `model` is a Keras model, what `optimize` returned, or the number of a task. All that
    `trainyard.predict` can be told can be told here too.
    """

    def __init__(
        self,
        model: Any,
        dataset: "TFDataset",
        *,
        market: Market | None = None,
        verbose: Verbose = "auto",
        **wishes: Unpack[PredictWishes],
    ) -> None:
        self._model, self._dataset, self._market = model, dataset, market
        self._verbose = verbose
        self._wishes: PredictWishes = {"batch_size": dataset.batch_size, **wishes}

    def predict(self) -> "RDD[Any]":
        """An RDD with one array for each record, in the order of the data set's records.

        The predictions pass through the driver, and nothing else does.
        """
        from pyspark import SparkContext

        with market_or_found(self._market) as market:
            found = predict(
                market, self._model, self._dataset.cid, self._wishes, verbose=self._verbose
            )
        return SparkContext.getOrCreate().parallelize(list(found))
