"""A manifest in a few words and numbers."""

from collections import Counter
from collections.abc import Sequence

from dapp.schemas.posting import LayerView
from dapp.schemas.tasks import ManifestSummary
from trainyard.protocol.manifest import Manifest, Model

_SAID = ("Dense", "Conv1D", "Conv2D", "LSTM", "GRU", "Embedding", "MultiHeadAttention")
_LONGEST = 200


def summary_of(manifest: Manifest) -> ManifestSummary:
    training, plan = manifest.training, manifest.plan
    return ManifestSummary.model_validate(
        {
            "title": title_of(manifest),
            "mode": training.mode,
            "workers": training.workers,
            "parameters": manifest.model.parameters,
            "layers": len(manifest.model.layers),
            "records": manifest.data.train.records,
            "batch": training.batch,
            "steps": plan.steps,
            "segments": plan.segments,
            # As asked for: the last batch reaches into one more.
            "epochs": training.until.epochs
            or plan.steps * training.batch / max(1, plan.train_records),
        }
    )


def title_of(manifest: Manifest) -> str:
    """What a row of the market shows: what is computed, and on what."""
    kinds = Counter[str](layer.type for layer in manifest.model.layers)
    named = [f"{kinds[kind]} x {kind}" for kind in _SAID if kinds[kind]]
    network = ", ".join(named[:3]) or f"{len(manifest.model.layers)} layers"
    shapes = " and ".join(_size(given.shape) for given in manifest.model.inputs[:2])
    return f"{network} on {manifest.data.train.records:,} records of {shapes}"[:_LONGEST]


def _size(shape: Sequence[int]) -> str:
    match shape:
        case [] | [1]:
            return "one number"
        case [count]:
            return f"{count:,} numbers"
        case _:
            return "x".join(map(str, shape))


def layers_of(model: Model) -> list[LayerView]:
    return [
        LayerView(
            name=layer.name,
            type=layer.type,
            output=list(model.effects[layer.name].output.shape),
            parameters=model.effects[layer.name].trainable + model.effects[layer.name].fixed,
        )
        for layer in model.layers
    ]
