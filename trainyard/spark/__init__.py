"""Spark's data into content, and models trained on it by the market.

    from trainyard.spark import MaxEpoch, TFDataset, TFOptimizer

    dataset = TFDataset.from_rdd(rdd, ["x", "y"], [[28, 28, 1], []], ["float32", "int32"], 64)
    TFOptimizer(model, dataset=dataset).optimize(end_trigger=MaxEpoch(5))

What is here is imported when it is first used: executors, which write shards, load no TensorFlow.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainyard.spark.context import init_nncontext as init_nncontext
    from trainyard.spark.dataset import TFDataset as TFDataset
    from trainyard.spark.optimizer import TFOptimizer as TFOptimizer
    from trainyard.spark.predictor import TFPredictor as TFPredictor
    from trainyard.spark.summaries import TrainSummary as TrainSummary
    from trainyard.spark.triggers import MaxEpoch as MaxEpoch
    from trainyard.spark.triggers import MaxIteration as MaxIteration

# Where each public name is found.
_PLACES = {
    "MaxEpoch": "triggers",
    "MaxIteration": "triggers",
    "TFDataset": "dataset",
    "TFOptimizer": "optimizer",
    "TFPredictor": "predictor",
    "TrainSummary": "summaries",
    "init_nncontext": "context",
}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
