"""A manifest as something that TensorFlow runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from trainyard.engine.building import (
    ShiftedSchedule,
    call_layer,
    make_layer,
    make_optimizer,
    settle_weights,
)
from trainyard.engine.causes import cause, is_lost_peer, lasting_cause
from trainyard.engine.errors import RunError
from trainyard.engine.objectives import Objective, class_weight_of, loss_of, metric_of
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest, Model

# Keras reads these from a file of its user, and they change results.
_SETTINGS = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}
# How Keras calls a seed, below the number of its generator.
_SEED = "/seed_generator_state"


@dataclass(frozen=True, slots=True)
class Network:
    """A model with its first weights: all that predicting takes."""

    model: Any

    @property
    def variables(self) -> dict[str, Any]:
        """All variables of the model by names that are the same in each build of a manifest.

        Keras numbers seeds through the whole process, so here they are named by their layer.
        """
        named = {}
        for layer in self.model.layers:
            seeds = 0
            for variable in layer.variables:
                name = variable.path
                if name.endswith(_SEED) or not name.startswith(f"{layer.name}/"):
                    name = f"{layer.name}/seed_{seeds}"
                    seeds += 1
                named[name] = variable
        return named

    def as_inputs(self, tensors: list[Any]) -> Any:
        """Tensors in the order of the model's inputs, in the form that the model takes."""
        return tensors if len(tensors) > 1 else tensors[0]


@dataclass(frozen=True, slots=True)
class Program(Network):
    """A network, its optimiser, and what is minimised and measured.

    `loss` and `metrics` give a float32 for each example, so that sums over workers add up.
    Regularisers are in `model.losses`, apart from `loss`.
    """

    optimizer: Any
    loss: Objective
    metrics: Mapping[str, Objective]
    class_weight: Any = None

    def schedule_from(self, step: int) -> None:
        """Let the schedule of the learning rate, if there is one, go on from `step` of the run.

        For who has not taken all steps before it, as some workers of rounds have not.
        """
        schedule = self.optimizer._learning_rate
        if isinstance(schedule, ShiftedSchedule):
            schedule.shift.assign(step - self.optimizer.iterations)

    def weigh(self, target: Any, weight: Any) -> Any:
        """The weights of the examples: those of the records, times those of their classes."""
        weight = tf.reshape(tf.cast(weight, tf.float32), [-1])
        return weight if self.class_weight is None else weight * self.class_weight(target)


def build(manifest: Manifest) -> Program:
    """The program of a manifest. Its first weights are a function of the manifest alone."""
    training = manifest.training
    if training.optimizer is None or training.loss is None:
        raise RunError("the manifest predicts: there is nothing to train with")
    model = build_network(manifest).model
    with _building():
        optimizer = make_optimizer(training.optimizer, shifts=training.mode == "rounds")
        optimizer.build(model.trainable_variables)
        return Program(
            model=model,
            optimizer=optimizer,
            loss=loss_of(training.loss),
            metrics={metric.title: metric_of(metric) for metric in training.metrics},
            class_weight=class_weight_of(training.class_weight, manifest.classes, training.loss),
        )


def build_network(manifest: Manifest) -> Network:
    """The network of a manifest, with the same first weights as its program."""
    _check_settings()
    with _building():
        return Network(build_model(manifest.model, manifest.training.seed))


def build_model(model: Model, seed: int) -> Any:
    """The Keras model, of layers under the names that they have in the manifest."""
    tensors = {
        given.name: keras.Input(given.shape, dtype=given.dtype, name=given.name)
        for given in model.inputs
    }
    inputs = list(tensors.values())
    for layer in model.layers:
        made = make_layer(layer, seed)
        given = [tensors[name] for name in model.wiring[layer.name]]
        tensors[layer.name] = call_layer(layer, made, given)
        settle_weights(layer, made, seed)
    output = tensors[model.outputs[0]]
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], output, name="model")


@contextmanager
def _building() -> Iterator[None]:
    """What Keras refuses it refuses on every machine: whoever starts anew would meet it again."""
    try:
        yield
    except TrainyardError:
        raise
    except Exception as error:
        if is_lost_peer(error):
            raise
        raise RunError(f"no model can be made: {lasting_cause(error) or cause(error)}") from error


def _check_settings() -> None:
    if keras.backend.backend() != "tensorflow":
        raise RunError("Keras runs on another backend; set KERAS_BACKEND=tensorflow")
    if keras.config.dtype_policy().name != "float32":
        raise RunError("Keras has another policy of types; leave it at float32")
    for name, wanted in _SETTINGS.items():
        found = getattr(keras.config, name)()
        if found != wanted:
            raise RunError(
                f"Keras is configured with {name} = {found!r}, results need {wanted!r}; "
                "remove ~/.keras/keras.json"
            )
