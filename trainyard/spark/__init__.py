"""Spark's data into content, written by its executors.

    from trainyard.spark import TFDataset

    dataset = TFDataset.from_rdd(rdd, ["x", "y"], [[28, 28, 1], []], ["float32", "int32"], 64)

What is here is imported when it is first used: executors, which write shards, load no TensorFlow.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainyard.spark.context import init_nncontext as init_nncontext
    from trainyard.spark.dataset import TFDataset as TFDataset

# Where each public name is found.
_PLACES = {
    "TFDataset": "dataset",
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
