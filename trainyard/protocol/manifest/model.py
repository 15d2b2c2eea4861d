"""A model: inputs, layers in an order in which each reads only earlier ones, one output."""

from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from trainyard.protocol.manifest.errors import MisfitError
from trainyard.protocol.manifest.layers import AnyLayer, Effect
from trainyard.protocol.manifest.values import Name, Shape, Strict, Tensor

MOST_LAYERS = 512
MOST_INPUTS = 16
MOST_PARAMETERS = 200_000_000
MOST_ACTIVATIONS = 100_000_000

InputDtype: TypeAlias = Literal[
    "uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64"
]


def _check_one(outputs: tuple[str, ...]) -> tuple[str, ...]:
    if len(outputs) > 1:
        raise ValueError(
            f"{len(outputs)} outputs, where one is trained: "
            "concatenate them, or make a model of each"
        )
    return outputs


class Input(Strict):
    name: Name
    shape: Shape
    dtype: InputDtype = "float32"

    @property
    def tensor(self) -> Tensor:
        return Tensor(self.shape, self.dtype)


class Model(Strict):
    """Nothing refers ahead or to itself, so nothing recurs and one pass knows all shapes."""

    inputs: Annotated[tuple[Input, ...], Field(min_length=1, max_length=MOST_INPUTS)]
    layers: Annotated[
        tuple[AnyLayer, ...], Field(min_length=1, max_length=MOST_LAYERS, fail_fast=True)
    ]
    outputs: Annotated[tuple[Name, ...], Field(min_length=1), AfterValidator(_check_one)]

    @cached_property
    def wiring(self) -> dict[str, tuple[str, ...]]:
        """What each layer reads, by name, also where the manifest leaves it out."""
        before = self.inputs[0].name
        wires = {}
        for layer in self.layers:
            wires[layer.name] = layer.sources or (before,)
            before = layer.name
        return wires

    @cached_property
    def effects(self) -> dict[str, Effect]:
        """Outputs and weights of each layer, by name; inputs count as layers without weights."""
        effects = {given.name: Effect(given.tensor) for given in self.inputs}
        for number, layer in enumerate(self.layers):
            given = [effects[name].output for name in self.wiring[layer.name]]
            try:
                effects[layer.name] = layer.effect(*given)
            except ValueError as error:
                path = error.path if isinstance(error, MisfitError) else ()
                raise MisfitError(
                    f"{layer.type} {layer.name!r} {error}", "layers", number, *path
                ) from error
        return effects

    @property
    def output(self) -> Tensor:
        return self.effects[self.outputs[0]].output

    @property
    def trainable_parameters(self) -> int:
        return sum(effect.trainable for effect in self.effects.values())

    @property
    def still(self) -> tuple[str, ...]:
        """The layers that are not trained: no step changes what they have."""
        return tuple(layer.name for layer in self.layers if not layer.trainable)

    @property
    def moving_parameters(self) -> int:
        """Those that a step may change: of a layer that is not trained there are none."""
        effects = (self.effects[layer.name] for layer in self.layers if layer.trainable)
        return sum(effect.trainable + effect.fixed for effect in effects)

    @property
    def parameters(self) -> int:
        return sum(effect.trainable + effect.fixed for effect in self.effects.values())

    @property
    def activations(self) -> int:
        """Values that training holds for each example of a batch."""
        return sum(effect.output.size + effect.scratch for effect in self.effects.values())

    @model_validator(mode="after")
    def _fits(self) -> "Model":
        self._check_names()
        self._check_use()
        self._check_masks()
        if self.parameters > MOST_PARAMETERS:
            raise MisfitError(
                f"{self.parameters} parameters, where at most {MOST_PARAMETERS} are trained"
            )
        if self.activations > MOST_ACTIVATIONS:
            raise MisfitError(
                f"{self.activations} values held for each example, where at most "
                f"{MOST_ACTIVATIONS} are; shrink the inputs or pool earlier"
            )
        return self

    def _check_names(self) -> None:
        later = {layer.name: number for number, layer in enumerate(self.layers)}
        known: set[str] = set()
        for number, given in enumerate(self.inputs):
            if given.name in known or given.name in later:
                raise MisfitError(f"the name {given.name!r} is taken", "inputs", number, "name")
            known.add(given.name)
        for number, layer in enumerate(self.layers):
            if layer.name in known:
                raise MisfitError(f"the name {layer.name!r} is taken", "layers", number, "name")
            if number == 0 and layer.sources is None and len(self.inputs) > 1:
                raise MisfitError(
                    "say which of the inputs the first layer reads", "layers", 0, "from"
                )
            for name in layer.sources or ():
                if name not in known:
                    ahead = name in later
                    reason = "is not before this layer" if ahead else "is no input or layer"
                    raise MisfitError(f"{name!r} {reason}", "layers", number, "from")
            known.add(layer.name)
        if self.outputs[0] not in later:
            raise MisfitError(f"{self.outputs[0]!r} is no layer", "outputs", 0)

    def _check_use(self) -> None:
        used = set(self.outputs)
        for number, layer in reversed(list(enumerate(self.layers))):
            if layer.name not in used:
                raise MisfitError(
                    f"nothing reads {layer.name!r}; remove it or name it in a 'from'",
                    "layers",
                    number,
                )
            used.update(self.wiring[layer.name])
        for number, given in enumerate(self.inputs):
            if given.name not in used:
                raise MisfitError(f"nothing reads {given.name!r}", "inputs", number)

    def _check_masks(self) -> None:
        """Padding is known as such up to a recurrent layer; nothing else would heed it."""
        masked = set()
        for number, layer in enumerate(self.layers):
            if layer.type == "Embedding" and layer.mask_zero:
                masked.add(layer.name)
            if masked.isdisjoint(self.wiring[layer.name]):
                continue
            if layer.type in ("LSTM", "GRU", "SimpleRNN"):
                sequences = layer.return_sequences
            elif layer.type == "Bidirectional":
                sequences = layer.layer.return_sequences
            elif layer.passes_mask:
                sequences = True
            else:
                other = "use Activation of softmax, " if layer.type == "Softmax" else ""
                raise MisfitError(
                    f"{layer.type} does not heed the padding of mask_zero; "
                    f"{other}set mask_zero to false or put a recurrent layer before",
                    "layers",
                    number,
                )
            if sequences:
                masked.add(layer.name)
        if self.outputs[0] in masked:
            raise MisfitError(
                "the padding of mask_zero reaches the output, where the loss would count it; "
                "end with return_sequences false, or set mask_zero to false",
                "outputs",
                0,
            )
