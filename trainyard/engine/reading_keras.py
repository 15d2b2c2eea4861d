"""Fields of a manifest from the objects of Keras, of which every other setting must be plain."""

import warnings
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any, get_args

import keras
import numpy as np
from pydantic import BaseModel

from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest.explaining import nearest
from trainyard.protocol.manifest.layers import AnyLayer
from trainyard.protocol.manifest.layers.recurrent import Body
from trainyard.protocol.manifest.objectives import Loss, Metric
from trainyard.protocol.manifest.optimizers import Optimizer, Schedule
from trainyard.protocol.manifest.parts import Constraint, Initializer, Regularizer


class ModelImportError(PermanentError, ValueError):
    """A Keras model of which a part cannot be said in a manifest."""


_PARTS = {"initializer": Initializer, "regularizer": Regularizer, "constraint": Constraint}
_LAST_AXIS = ("BatchNormalization", "LayerNormalization", "Normalization")
_LENGTHS = ("kernel_size", "strides", "pool_size", "dilation_rate")
# Names, and what the engine sets by itself.
_SET_BY_US = {"name", "trainable", "dtype", "seed", "type", "sources", "use_causal_mask"}


def _by_type(union: Any) -> dict[str, type[BaseModel]]:
    kinds: tuple[type[BaseModel], ...] = get_args(get_args(union)[0])
    return {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in kinds}


_LAYERS, _BODIES = _by_type(AnyLayer), _by_type(Body)


def fields_of(layer: Any) -> dict[str, Any]:
    """The fields of `layer`, apart from its name and place."""
    kind = type(layer).__name__
    what = f"the layer {layer.name!r}"
    if type(layer) is not getattr(keras.layers, kind, None):
        raise ModelImportError(f"{what} is a class of its own, {kind}; {_instead(kind)}")
    if kind not in _LAYERS:
        raise ModelImportError(f"{what}: no {kind} is supported; {nearest(kind, list(_LAYERS))}")
    if layer.dtype_policy.name != "float32":
        raise ModelImportError(f"{what} computes in {layer.dtype_policy.name}; use float32")
    fields = {"trainable": bool(layer.trainable)} if layer.weights else {}
    if kind == "Bidirectional":
        return fields | _bidirectional(layer)
    config = _settings(layer)
    if kind in _LAST_AXIS:
        _check_axis(layer, config.pop("axis"))
    if kind == "Normalization" and config["mean"] is None:
        config |= _statistics(layer)
    if kind == "MultiHeadAttention":
        config["output_shape"] = _single(config.get("output_shape"))
        if config["value_dim"] == config["key_dim"]:
            del config["value_dim"]
        if _single(config["attention_axes"]) == 1:  # what None becomes for a row of steps
            del config["attention_axes"]
    if isinstance(config.get("factor"), list | tuple):
        low, high = config["factor"]
        if -low == high or (kind == "RandomContrast" and low == high):
            config["factor"] = high  # what one number becomes
    if kind.endswith("1D"):
        config |= {name: _single(config[name]) for name in _LENGTHS if name in config}
    if "pool_size" in config and config["strides"] == config["pool_size"]:
        del config["strides"]
    return fields | _read(what, kind, config, _LAYERS[kind], type(layer))


def optimizer_of(optimizer: Any) -> dict[str, Any]:
    kind = type(optimizer).__name__
    known = _by_type(Optimizer)
    if kind not in known or type(optimizer) is not getattr(keras.optimizers, kind):
        raise ModelImportError(f"no optimizer {kind} is supported; {nearest(kind, list(known))}")
    config = optimizer.get_config()
    rate = config["learning_rate"]
    fields = _read(f"the optimizer {kind}", kind, config, known[kind], type(optimizer))
    if isinstance(rate, dict):
        name = rate["class_name"]
        schedules = _by_type(Schedule)
        if name not in schedules:
            raise ModelImportError(
                f"no schedule {name} is supported; {nearest(name, list(schedules))}"
            )
        source = getattr(keras.optimizers.schedules, name)
        fields["learning_rate"] = _read(name, name, rate["config"], schedules[name], source)
    return fields


def objective_of(given: Any, module: Any) -> dict[str, Any]:
    """A loss or metric, as `compile` takes them or `get_compile_config` writes them."""
    known = _by_type(Loss if module is keras.losses else Metric)
    config: dict[str, Any] = {}
    if isinstance(given, str):
        found = module.get(given)
        kind = getattr(found, "__name__", type(found).__name__)
    elif isinstance(given, keras.losses.Loss | keras.metrics.Metric):
        kind, config = type(given).__name__, given.get_config()
    elif isinstance(given, dict) and isinstance(given.get("config"), dict):
        kind, config = given["class_name"], given["config"]
    else:
        kind = getattr(given, "__name__", repr(given))
    by_name = {name.lower(): name for name in known}
    kind = by_name.get(kind.replace("_", "").lower(), kind)
    if kind not in known:
        raise ModelImportError(f"no {kind} is supported; {nearest(kind, list(known))}")
    fields = _read(kind, kind, config, known[kind], getattr(module, kind))
    if module is keras.metrics and config.get("name"):
        fields["name"] = config["name"]
    return fields


def _read(
    what: str, kind: str, config: Mapping[str, Any], wanted: type[BaseModel], source: Any
) -> dict[str, Any]:
    """What of `config` a manifest says; ModelImportError where the rest is not as Keras has it."""
    fields: dict[str, Any] = {"type": kind}
    taken = signature(source.__init__).parameters
    for name, value in config.items():
        if name in wanted.model_fields and name not in _SET_BY_US:
            if value is not None:
                fields[name] = _field(what, name, value)
        elif name not in _SET_BY_US:
            default = taken[name].default if name in taken else False
            plain = (None, default, "channels_last") if name == "data_format" else (None, default)
            if default is not Parameter.empty and _plain(value) not in map(_plain, plain):
                raise ModelImportError(
                    f"{what} has {name}={value!r}, which is not supported; leave it at {default!r}"
                )
    return fields


def _field(what: str, name: str, value: Any) -> Any:
    part = _PARTS.get(name.rsplit("_", 1)[-1])
    if part is not None:
        return _part(what, name, value, _by_type(part))
    if isinstance(value, dict):
        if name == "learning_rate":
            return None  # read by its own kind
        raise ModelImportError(f"{what}: {name} is code of its own, {value.get('registered_name')}")
    return _plain(value)


def _part(what: str, name: str, value: Any, known: dict[str, type[BaseModel]]) -> Any:
    kind = str(value.get("class_name") if isinstance(value, dict) else value)
    module = value.get("module", "") if isinstance(value, dict) else ""
    if kind not in known or not str(module).startswith("keras."):
        raise ModelImportError(
            f"{what}: no {name} {kind} is supported; {nearest(kind, list(known))}"
        )
    fields = {"type": kind}
    for field, setting in value["config"].items():
        if field in known[kind].model_fields:
            fields[field] = _plain(setting)
        elif field != "seed" and setting is not None:
            raise ModelImportError(f"{what}: {name} has {field}={setting!r}, leave it out")
    return fields


def _bidirectional(layer: Any) -> dict[str, Any]:
    what = f"the layer {layer.name!r}"
    forward, backward = layer.forward_layer, layer.backward_layer
    kind = type(forward).__name__
    if kind not in _BODIES or type(forward) is not getattr(keras.layers, kind):
        raise ModelImportError(f"{what} has {kind} inside; use LSTM, GRU or SimpleRNN")
    if layer.merge_mode is None:
        raise ModelImportError(f"{what} has two outputs; give it a merge_mode")
    bodies = [
        # Both ways have zero_output_for_mask set by Keras, as ours will.
        _read(
            what,
            kind,
            _settings(way) | {"zero_output_for_mask": None},
            _BODIES[kind],
            type(way),
        )
        for way in (forward, backward)
    ]
    if bodies[0] | {"go_backwards": True} != bodies[1]:
        raise ModelImportError(f"{what} is not the same both ways; leave backward_layer out")
    return {"type": "Bidirectional", "layer": bodies[0], "merge_mode": layer.merge_mode}


def _settings(layer: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        # Keras warns of code in a layer, which is refused below by its name.
        warnings.simplefilter("ignore")
        config: dict[str, Any] = layer.get_config()
    return config


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _check_axis(layer: Any, axis: Any) -> None:
    axes = axis if isinstance(axis, list | tuple) else [axis]
    last = len(layer.input.shape) - 1
    if len(axes) > 1 or (axes and axes[0] not in (-1, last)):
        raise ModelImportError(
            f"the layer {layer.name!r} has axis={axis!r}; only the last is supported, use Permute"
        )


def _statistics(layer: Any) -> dict[str, Any]:
    """Mean and variance of a Normalization, whether it was given them or found them itself."""
    if not hasattr(layer, "mean") or layer.mean is None:
        raise ModelImportError(
            f"the layer {layer.name!r} has no mean and variance yet; call adapt() on the data"
        )
    found = {name: np.asarray(getattr(layer, name)).reshape(-1) for name in ("mean", "variance")}
    return {
        name: _plain(values if values.size > 1 else values[0]) for name, values in found.items()
    }


def _plain(value: Any) -> Any:
    """JSON for a value; float32 as the shortest decimal that it stands for."""
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.floating | float) and np.float32(value) == value:
        return float(str(np.float32(value)))
    return value.item() if isinstance(value, np.generic) else value


def _instead(kind: str) -> str:
    return f"no worker runs its code; {nearest(kind, list(_LAYERS))}"
