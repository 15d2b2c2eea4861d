"""Layers, optimisers and their parts in Keras, each made from checked fields of a manifest.

Keras itself never reads a foreign configuration. What it would take from the machine (types, the
order of axes, seeds) is always given.
"""

import hashlib
from collections.abc import Mapping
from inspect import signature
from typing import Any

import keras
from pydantic import BaseModel

from trainyard.protocol.manifest.layers import AnyLayer, Layer
from trainyard.protocol.manifest.layers.attending import MultiHeadAttention
from trainyard.protocol.manifest.layers.images import RandomContrast
from trainyard.protocol.manifest.layers.recurrent import Bidirectional, Recurrent
from trainyard.protocol.manifest.optimizers import Optimizer

_ALWAYS = {"dtype": "float32", "data_format": "channels_last"}
# Fields that are ours alone, or are given when the layer is called.
_OURS = {"type", "name", "sources", "trainable", "use_causal_mask"}
_PROJECTIONS = ("query", "key", "value", "attention_output")


def derived_seed(seed: int, layer: str, use: str) -> int:
    """The seed of one use of chance: a function of the manifest's seed and of names alone."""
    # The lengths keep ("a", "b/c") and ("a/b", "c") apart. 30 bits leave Keras room to count on.
    text = f"trainyard seed {seed} {len(layer)} {layer} {use}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 2


def make_layer(layer: AnyLayer, seed: int) -> Any:
    """The Keras layer that `layer` describes, not yet built."""
    if isinstance(layer, Bidirectional):
        return _make_bidirectional(layer, seed)
    kind = getattr(keras.layers, layer.type)  # a name of the whitelist, or it would not be here
    made = kind(**_arguments(kind, layer, seed, layer.name), name=layer.name)
    made.trainable = layer.trainable
    return made


def call_layer(layer: AnyLayer, made: Any, given: list[Any]) -> Any:
    """What `made` gives for `given`, after which it has its first weights."""
    options = {}
    if getattr(layer, "use_causal_mask", False):
        options["use_causal_mask"] = True
    if isinstance(layer, MultiHeadAttention):
        query, value, *key = given
        return made(query, value, *key, **options)
    return made(given if len(given) > 1 else given[0], **options)


def settle_weights(layer: AnyLayer, made: Any, seed: int) -> None:
    """Give their own first weights to those that Keras would start alike."""
    if not isinstance(layer, MultiHeadAttention):
        return
    for variable in made.weights:
        *_, part, kind = variable.path.split("/")
        if kind == "kernel" and part in _PROJECTIONS:
            use = f"{part}/kernel_initializer"
            initializer = make_part("initializers", layer.kernel_initializer, seed, layer.name, use)
            variable.assign(initializer(variable.shape, variable.dtype))


def make_part(module: str, part: BaseModel, seed: int, layer: str, use: str) -> Any:
    """An initialiser, regulariser or constraint."""
    fields = dict(_values(part))
    kind = getattr(getattr(keras, module), fields.pop("type"))
    if "seed" in signature(kind.__init__).parameters:
        fields["seed"] = derived_seed(seed, layer, use)
    return kind(**fields)


class ShiftedSchedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A schedule that is `shift` steps further than its optimiser has counted.

    The optimiser's own count stays what it is: by it Adam knows how much it has seen.
    """

    def __init__(self, schedule: Any) -> None:
        super().__init__()
        self.shift = keras.Variable(0, dtype="int64", trainable=False, name="shift")
        self._schedule = schedule

    def __call__(self, step: Any) -> Any:
        return self._schedule(step + self.shift)


def make_optimizer(optimizer: Optimizer, *, shifts: bool = False) -> Any:
    """The optimiser; if it `shifts`, with a schedule that can be set to any step."""
    fields = dict(_values(optimizer))
    kind = getattr(keras.optimizers, fields.pop("type"))
    rate = fields["learning_rate"]
    if isinstance(rate, BaseModel):
        schedule = {**_values(rate)}
        made = getattr(keras.optimizers.schedules, schedule.pop("type"))(
            **{name: _plain(value) for name, value in schedule.items()}
        )
        fields["learning_rate"] = ShiftedSchedule(made) if shifts else made
    return kind(**fields)


def _make_bidirectional(layer: Bidirectional, seed: int) -> Any:
    body = layer.layer
    kind = getattr(keras.layers, body.type)
    # Given both, as Keras would copy the forward one together with its seeds.
    ways = {
        way: kind(
            **{
                **_arguments(kind, body, seed, f"{layer.name}/{way}"),
                "go_backwards": way == "backward",
            },
            name=f"{way}_{body.type.lower()}",
        )
        for way in ("forward", "backward")
    }
    made = keras.layers.Bidirectional(
        ways["forward"],
        backward_layer=ways["backward"],
        merge_mode=layer.merge_mode,
        dtype="float32",
        name=layer.name,
    )
    made.trainable = layer.trainable
    return made


def _arguments(kind: Any, layer: Layer | Recurrent, seed: int, name: str) -> dict[str, Any]:
    taken = signature(kind.__init__).parameters
    arguments: dict[str, Any] = {
        field: value
        for field, value in _ALWAYS.items()
        if field in taken or (field == "dtype" and "kwargs" in taken)
    }
    if "seed" in taken:
        arguments["seed"] = derived_seed(seed, name, "draws")
    for field, value in _values(layer).items():
        if field in _OURS:
            continue
        if isinstance(value, BaseModel):
            module = field.rsplit("_", 1)[1] + "s"
            value = make_part(module, value, seed, name, field)
        arguments[field] = value
    if isinstance(layer, RandomContrast):
        # Of one number Keras takes the upper half alone, unlike what it documents.
        arguments["factor"] = (layer.factor, layer.factor)
    return arguments


def _values(model: BaseModel) -> Mapping[str, Any]:
    return {name: getattr(model, name) for name in type(model).model_fields}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
