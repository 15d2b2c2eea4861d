"""Losses and metrics as functions from a batch to one number an example."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from trainyard.protocol.manifest.objectives import Loss, Metric

Objective: TypeAlias = Callable[[Any, Any], Any]
"""Targets and outputs of a batch in, a float32 for each example out."""


def loss_of(loss: Loss) -> Objective:
    function = _function(loss)
    return lambda target, output: _per_example(function(*_aligned(loss.sparse, target, output)))


def metric_of(metric: Metric) -> Objective:
    function = _function(metric)
    return lambda target, output: _per_example(function(*_aligned(metric.sparse, target, output)))


def class_weight_of(weights: dict[str, float] | None, classes: int, loss: Loss) -> Any:
    """A function from targets to the weight of each example's class, or None."""
    if weights is None:
        return None
    table = tf.constant([weights.get(str(label), 1.0) for label in range(classes)], tf.float32)

    def weigh(target: Any) -> Any:
        if loss.type == "BinaryCrossentropy":
            return _weigh_binary(table, target)
        if loss.sparse:
            return tf.gather(table, tf.reshape(target, [-1]))
        return tf.gather(table, tf.argmax(target, axis=-1))

    return weigh


def _weigh_binary(table: Any, target: Any) -> Any:
    """As Keras weighs: by the nearest class, of two as near by the even one; 1 by any other."""
    label = tf.round(tf.cast(tf.reshape(target, [-1]), tf.float32))
    weights = tf.ones_like(label)
    for number, weight in enumerate(tf.unstack(table)):
        weights = tf.where(tf.equal(label, float(number)), weight, weights)
    return weights


def _function(objective: Loss | Metric) -> Objective:
    losses, metrics = keras.losses, keras.metrics
    match objective.type:
        case "SparseCategoricalCrossentropy":
            logits = objective.from_logits
            return lambda y, p: losses.sparse_categorical_crossentropy(y, p, from_logits=logits)
        case "CategoricalCrossentropy":
            options = {
                "from_logits": objective.from_logits,
                "label_smoothing": objective.label_smoothing,
            }
            return lambda y, p: losses.categorical_crossentropy(y, p, **options)
        case "BinaryCrossentropy":
            options = {
                "from_logits": objective.from_logits,
                "label_smoothing": objective.label_smoothing,
            }
            return lambda y, p: losses.binary_crossentropy(y, p, **options)
        case "Huber":
            delta = objective.delta
            return lambda y, p: losses.huber(y, p, delta=delta)
        case "KLDivergence":
            return lambda y, p: losses.kl_divergence(y, p)
        case "LogCosh":
            return lambda y, p: losses.log_cosh(y, p)
        case "MeanSquaredError":
            return lambda y, p: losses.mean_squared_error(y, p)
        case "MeanAbsoluteError":
            return lambda y, p: losses.mean_absolute_error(y, p)
        case "SparseCategoricalAccuracy":
            return lambda y, p: metrics.sparse_categorical_accuracy(y, p)
        case "SparseTopKCategoricalAccuracy":
            most = objective.k
            return lambda y, p: metrics.sparse_top_k_categorical_accuracy(y, p, k=most)
        case "CategoricalAccuracy":
            return lambda y, p: metrics.categorical_accuracy(y, p)
        case "BinaryAccuracy":
            threshold = objective.threshold
            return lambda y, p: metrics.binary_accuracy(y, p, threshold=threshold)


def _aligned(sparse: bool, target: Any, output: Any) -> tuple[Any, Any]:
    """Targets in the shape that outputs have, or that they have without their classes."""
    output = tf.convert_to_tensor(output)
    shape = tf.shape(output)
    if sparse:
        return tf.cast(tf.reshape(target, shape[:-1]), tf.int64), output
    return tf.cast(tf.reshape(target, shape), tf.float32), output


def _per_example(values: Any) -> Any:
    values = tf.cast(values, tf.float32)
    rank = values.shape.rank
    return tf.reduce_mean(values, axis=list(range(1, rank))) if rank > 1 else values
