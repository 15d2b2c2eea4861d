"""Keras models as sections of a manifest. What cannot be said there is refused by its name."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import keras
from pydantic import ValidationError

from trainyard.engine.reading_keras import (
    ModelImportError,
    fields_of,
    objective_of,
    optimizer_of,
)
from trainyard.protocol.manifest import Model
from trainyard.protocol.manifest.explaining import explain
from trainyard.protocol.manifest.objectives import Loss, Metric
from trainyard.protocol.manifest.optimizers import Optimizer
from trainyard.protocol.manifest.values import Strict

_LONGEST_NAME = 64
_CALLED_WITH = {"use_causal_mask", "query", "value", "key"}
_ACCURACIES = {
    "SparseCategoricalCrossentropy": "SparseCategoricalAccuracy",
    "CategoricalCrossentropy": "CategoricalAccuracy",
    "BinaryCrossentropy": "BinaryAccuracy",
}


class _Measures(Strict):
    loss: Loss
    metrics: tuple[Metric, ...]


class _Objectives(_Measures):
    optimizer: Optimizer


_Checked = TypeVar("_Checked", bound=Strict)


def model_of(model: Any) -> Model:
    """The model section for a Sequential or Functional model; nested ones are laid flat."""
    if not _is_graph(model):
        raise ModelImportError(
            f"{type(model).__name__} is a class of its own, whose code no worker would run; "
            "make it a Sequential or Functional model"
        )
    if not model.built:
        raise ModelImportError("the model has no shapes yet; start it with keras.Input(shape)")
    inputs = [_input(tensor) for tensor in model.inputs]
    layers: list[dict[str, Any]] = []
    outputs = _lay_out(model, [given["name"] for given in inputs], "", layers)
    return _checked(Model, {"inputs": inputs, "layers": layers, "outputs": outputs})


def layers_named(model: Any, prefix: str = "") -> dict[str, Any]:
    """The layers of a model that `model_of` took, by their names in the manifest."""
    named: dict[str, Any] = {}
    for layer in model.layers:
        if isinstance(layer, keras.layers.InputLayer):
            continue
        name = _name(prefix, layer.name)
        if isinstance(layer, keras.Model):
            named |= layers_named(layer, f"{name}_")
        else:
            named[name] = layer
    return named


def training_of(model: Any) -> dict[str, Any]:
    """What a compiled model is trained with: `optimizer`, `loss` and `metrics` of a manifest."""
    measures = _measures(model)
    document = {"optimizer": optimizer_of(model.optimizer), **measures}
    found = _checked(_Objectives, document)
    return found.model_dump(mode="json", by_alias=True, exclude_none=True)


def measures_of(model: Any) -> tuple[Loss, tuple[Metric, ...]]:
    """What a compiled model is measured by."""
    found = _checked(_Measures, _measures(model))
    return found.loss, found.metrics


def _measures(model: Any) -> dict[str, Any]:
    if not getattr(model, "compiled", False) or model.loss is None:
        raise ModelImportError("the model is not compiled; compile it with an optimizer and a loss")
    loss = objective_of(model.loss, keras.losses)
    settings = model.get_compile_config()
    for name in ("loss_weights", "weighted_metrics"):
        if settings.get(name):
            raise ModelImportError(f"{name} are not supported; use a weight feature of the records")
    metrics = []
    for given in settings.get("metrics") or []:
        if given in ("accuracy", "acc"):
            kind = _ACCURACIES.get(loss["type"])
            if kind is None:
                raise ModelImportError(f"there is no accuracy for {loss['type']}; remove it")
            # Under the name that Keras' own reports have for it.
            metrics.append({"type": kind, "name": given})
        else:
            metrics.append(objective_of(given, keras.metrics))
    return {"loss": loss, "metrics": metrics}


def _checked(kind: type[_Checked], document: dict[str, Any]) -> _Checked:
    try:
        return kind.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise explain(kind, error) from None


def _is_graph(model: Any) -> bool:
    kind = type(model)
    # Keras exports no name for what keras.Model(inputs, outputs) makes.
    is_functional = kind.__name__ == "Functional" and kind.__module__.startswith("keras.")
    return kind is keras.Sequential or is_functional


def _input(tensor: Any) -> dict[str, Any]:
    shape = tensor.shape[1:]
    if None in shape:
        raise ModelImportError(
            f"the input {tensor.name!r} has an open length {list(shape)}; give all but the batch's"
        )
    return {"name": _name("", tensor.name), "shape": list(shape), "dtype": str(tensor.dtype)}


def _lay_out(model: Any, given: list[str], prefix: str, layers: list[dict[str, Any]]) -> list[str]:
    """Append the layers of `model`, which reads `given`, and say what it ends with."""
    if isinstance(model, keras.Sequential):
        last = given
        for layer in model.layers:
            last = _append(layer, last, {}, prefix, layers)
        return last
    config = model.get_config()
    ends = dict(zip(_ends(config["input_layers"]), ([name] for name in given), strict=True))
    for entry in config["layers"]:
        if entry["name"] in ends:
            continue
        if len(entry["inbound_nodes"]) > 1:
            raise ModelImportError(
                f"the layer {entry['name']!r} is used {len(entry['inbound_nodes'])} times; "
                "a manifest shares no weights: make a layer for each use"
            )
        called = entry["inbound_nodes"][0]
        sources = [ends[name][0] for name in _sources(called["args"], called["kwargs"])]
        layer = model.get_layer(entry["name"])
        ends[entry["name"]] = _append(layer, sources, called["kwargs"], prefix, layers)
    return [ends[name][0] for name in _ends(config["output_layers"])]


def _append(
    layer: Any,
    sources: list[str],
    called_with: dict[str, Any],
    prefix: str,
    layers: list[dict[str, Any]],
) -> list[str]:
    name = _name(prefix, layer.name)
    if isinstance(layer, keras.Model):
        if not _is_graph(layer):
            raise ModelImportError(
                f"the layer {layer.name!r} is a model with code of its own ({type(layer).__name__})"
            )
        return _lay_out(layer, sources, f"{name}_", layers)
    for option, value in called_with.items():
        # Layers that vary examples note training=True, which a call of the model overrides.
        varies = option == "training" and hasattr(layer, "transform_images")
        if option not in _CALLED_WITH and not varies and value not in (None, False):
            raise ModelImportError(f"the layer {layer.name!r} is called with {option}={value!r}")
    fields = fields_of(layer)
    if called_with.get("use_causal_mask"):
        fields["use_causal_mask"] = True
    layers.append({"name": name, **fields, "from": sources})
    return [name]


def _sources(args: Any, kwargs: dict[str, Any]) -> list[str]:
    ordered = [kwargs[name] for name in ("query", "value", "key") if name in kwargs]
    return list(_histories([args, ordered]))


def _histories(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        yield value["config"]["keras_history"][0]
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _histories(one)


def _ends(ends: Any) -> list[str]:
    """Names of layers from `["a", 0, 0]` or a list of such, as Keras writes either."""
    if isinstance(ends[0], str):
        return [ends[0]]
    return [end[0] for end in ends]


def _name(prefix: str, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", prefix + name)[:_LONGEST_NAME]
