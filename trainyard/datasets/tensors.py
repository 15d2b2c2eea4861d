"""Reading the shards inside TensorFlow. The module is handed in: this package never imports it."""

from collections.abc import Callable
from typing import Any

from trainyard.datasets.schema import Encoding, Feature, Schema


def example_parser(schema: Schema, tf: Any) -> Callable[[Any], dict[str, Any]]:
    """What `dataset.map` takes after `tf.data.TFRecordDataset`: an Example to tensors by name."""
    spec = {feature.name: _spec(feature, tf) for feature in schema.features}

    def parse(example: Any) -> dict[str, Any]:
        parsed = tf.io.parse_single_example(example, spec)
        return {
            feature.name: _tensor(feature, parsed[feature.name], tf) for feature in schema.features
        }

    # Nothing in it depends on a tensor's value, so there is nothing to convert.
    converted: Callable[[Any], dict[str, Any]] = tf.autograph.experimental.do_not_convert(parse)
    return converted


def _spec(feature: Feature, tf: Any) -> Any:
    match feature.encoding:
        case Encoding.INT64:
            return tf.io.FixedLenFeature(feature.shape, tf.int64)
        case Encoding.FLOAT:
            return tf.io.FixedLenFeature(feature.shape, tf.float32)
        case Encoding.BYTES:
            return tf.io.FixedLenFeature(feature.shape, tf.string)
    return tf.io.FixedLenFeature((), tf.string)


def _tensor(feature: Feature, parsed: Any, tf: Any) -> Any:
    match feature.encoding:
        case Encoding.INT64:
            return tf.cast(parsed, feature.dtype)
        case Encoding.RAW:
            return tf.reshape(_decode_raw(feature, parsed, tf), feature.shape)
    return parsed


def _decode_raw(feature: Feature, parsed: Any, tf: Any) -> Any:
    if feature.dtype == "uint64":  # the one type that decode_raw lacks
        return tf.bitcast(tf.io.decode_raw(parsed, tf.int64), tf.uint64)
    return tf.io.decode_raw(parsed, feature.dtype)
