"""Trainyard: a decentralised marketplace for TensorFlow training.

    import trainyard

    history = trainyard.fit(model, x, y, epochs=5)

What is here is imported when it is first used: `import trainyard` alone loads neither TensorFlow
nor web3.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trainyard import aio as aio
    from trainyard.face import attach as attach
    from trainyard.face import connect as connect
    from trainyard.face import evaluate as evaluate
    from trainyard.face import fit as fit
    from trainyard.face import predict as predict
    from trainyard.face import predictions as predictions
    from trainyard.face import quote as quote
    from trainyard.protocol.errors import TrainyardError as TrainyardError
    from trainyard.sdk.errors import DetachedError as DetachedError
    from trainyard.sdk.errors import NotPostedError as NotPostedError
    from trainyard.sdk.market import Market as Market
    from trainyard.sdk.receipts import Receipt as Receipt

# Where each public name is found.
_PLACES = {
    "DetachedError": "trainyard.sdk.errors",
    "Market": "trainyard.sdk.market",
    "NotPostedError": "trainyard.sdk.errors",
    "Receipt": "trainyard.sdk.receipts",
    "TrainyardError": "trainyard.protocol.errors",
    "aio": "trainyard.aio",
    "attach": "trainyard.face",
    "connect": "trainyard.face",
    "evaluate": "trainyard.face",
    "fit": "trainyard.face",
    "predict": "trainyard.face",
    "predictions": "trainyard.face",
    "quote": "trainyard.face",
}

__all__ = ["__version__", *sorted(_PLACES)]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'trainyard' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_PLACES[name])
    found = module if _PLACES[name] == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
