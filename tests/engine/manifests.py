"""Manifests for tests: one small classifier, and every layer at least once."""

import copy
from typing import Any

from trainyard.protocol.manifest import Manifest

Document = dict[str, Any]
FOLDER = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"

_IMAGE, _SEQUENCE, _VECTOR = (8, 9, 3), (6, 4), (5,)

# A name for each case, the shapes of its inputs, and the layer without its name.
LAYERS: list[tuple[str, list[tuple[int, ...]], Document]] = [
    ("dense", [_VECTOR], {"type": "Dense", "units": 7, "activation": "gelu"}),
    ("dense on steps", [_SEQUENCE], {"type": "Dense", "units": 7, "use_bias": False}),
    ("conv1d", [_SEQUENCE], {"type": "Conv1D", "filters": 5, "kernel_size": 3}),
    (
        "conv1d causal",
        [_SEQUENCE],
        {"type": "Conv1D", "filters": 5, "kernel_size": 3, "padding": "causal", "dilation_rate": 2},
    ),
    (
        "conv2d",
        [_IMAGE],
        {"type": "Conv2D", "filters": 4, "kernel_size": [3, 2], "strides": [2, 1]},
    ),
    (
        "conv2d same",
        [_IMAGE],
        {"type": "Conv2D", "filters": 4, "kernel_size": 3, "strides": 2, "padding": "same"},
    ),
    (
        "conv2d dilated",
        [_IMAGE],
        {"type": "Conv2D", "filters": 4, "kernel_size": 3, "dilation_rate": [2, 1]},
    ),
    (
        "separable1d",
        [_SEQUENCE],
        {"type": "SeparableConv1D", "filters": 5, "kernel_size": 3, "depth_multiplier": 2},
    ),
    (
        "separable1d same",
        [_SEQUENCE],
        {"type": "SeparableConv1D", "filters": 5, "kernel_size": 2, "padding": "same"},
    ),
    (
        "separable2d",
        [_IMAGE],
        {"type": "SeparableConv2D", "filters": 5, "kernel_size": 3, "strides": 2},
    ),
    (
        "separable2d dilated",
        [_IMAGE],
        {"type": "SeparableConv2D", "filters": 5, "kernel_size": 3, "dilation_rate": 2},
    ),
    (
        "depthwise",
        [_IMAGE],
        {"type": "DepthwiseConv2D", "kernel_size": [2, 3], "depth_multiplier": 2},
    ),
    ("max1d", [_SEQUENCE], {"type": "MaxPooling1D"}),
    ("max2d", [_IMAGE], {"type": "MaxPooling2D", "pool_size": 3, "strides": 2, "padding": "same"}),
    ("average1d", [_SEQUENCE], {"type": "AveragePooling1D", "pool_size": 4, "strides": 1}),
    ("average2d", [_IMAGE], {"type": "AveragePooling2D", "pool_size": [2, 3]}),
    ("global max1d", [_SEQUENCE], {"type": "GlobalMaxPooling1D"}),
    ("global max2d", [_IMAGE], {"type": "GlobalMaxPooling2D", "keepdims": True}),
    ("global average1d", [_SEQUENCE], {"type": "GlobalAveragePooling1D", "keepdims": True}),
    ("global average2d", [_IMAGE], {"type": "GlobalAveragePooling2D"}),
    ("batchnorm", [_IMAGE], {"type": "BatchNormalization"}),
    ("batchnorm plain", [_VECTOR], {"type": "BatchNormalization", "scale": False}),
    ("layernorm", [_SEQUENCE], {"type": "LayerNormalization"}),
    ("dropout", [_VECTOR], {"type": "Dropout", "rate": 0.5}),
    ("dropout1d", [_SEQUENCE], {"type": "SpatialDropout1D", "rate": 0.5}),
    ("dropout2d", [_IMAGE], {"type": "SpatialDropout2D", "rate": 0.5}),
    ("noise", [_VECTOR], {"type": "GaussianNoise", "stddev": 0.5}),
    ("embedding", [(6,)], {"type": "Embedding", "input_dim": 11, "output_dim": 3}),
    ("lstm", [_SEQUENCE], {"type": "LSTM", "units": 3, "dropout": 0.2}),
    ("lstm steps", [_SEQUENCE], {"type": "LSTM", "units": 3, "return_sequences": True}),
    ("gru", [_SEQUENCE], {"type": "GRU", "units": 3, "recurrent_dropout": 0.2}),
    ("gru before", [_SEQUENCE], {"type": "GRU", "units": 3, "reset_after": False}),
    ("rnn", [_SEQUENCE], {"type": "SimpleRNN", "units": 3, "go_backwards": True}),
    ("both ways", [_SEQUENCE], {"type": "Bidirectional", "layer": {"type": "LSTM", "units": 3}}),
    (
        "both ways added",
        [_SEQUENCE],
        {
            "type": "Bidirectional",
            "layer": {"type": "GRU", "units": 3, "return_sequences": True},
            "merge_mode": "sum",
        },
    ),
    (
        "heads",
        [_SEQUENCE, (7, 5)],
        {"type": "MultiHeadAttention", "num_heads": 2, "key_dim": 3, "dropout": 0.1},
    ),
    (
        "heads with keys",
        [_SEQUENCE, (7, 5), (7, 2)],
        {
            "type": "MultiHeadAttention",
            "num_heads": 2,
            "key_dim": 3,
            "value_dim": 4,
            "output_shape": 8,
            "use_bias": False,
        },
    ),
    (
        "heads causal",
        [_SEQUENCE, _SEQUENCE],
        {"type": "MultiHeadAttention", "num_heads": 1, "key_dim": 3, "use_causal_mask": True},
    ),
    ("attention", [_SEQUENCE, (7, 4)], {"type": "Attention", "use_scale": True}),
    (
        "attention concat",
        [_SEQUENCE, (7, 2), (7, 4)],
        {"type": "Attention", "score_mode": "concat", "dropout": 0.1},
    ),
    ("add", [_IMAGE, _IMAGE, _IMAGE], {"type": "Add"}),
    ("subtract", [_IMAGE, _IMAGE], {"type": "Subtract"}),
    ("multiply", [_IMAGE, _IMAGE], {"type": "Multiply"}),
    ("average", [_IMAGE, _IMAGE], {"type": "Average"}),
    ("maximum", [_IMAGE, _IMAGE], {"type": "Maximum"}),
    ("concatenate", [(2, 3), (2, 4)], {"type": "Concatenate"}),
    ("concatenate steps", [(2, 3), (5, 3)], {"type": "Concatenate", "axis": 1}),
    ("flatten", [_IMAGE], {"type": "Flatten"}),
    ("reshape", [(4, 6)], {"type": "Reshape", "target_shape": [3, -1, 2]}),
    ("permute", [_IMAGE], {"type": "Permute", "dims": [3, 1, 2]}),
    ("repeat", [_VECTOR], {"type": "RepeatVector", "n": 4}),
    ("padding1d", [_SEQUENCE], {"type": "ZeroPadding1D", "padding": [1, 2]}),
    ("padding2d", [_IMAGE], {"type": "ZeroPadding2D", "padding": [[1, 2], [0, 3]]}),
    ("cropping", [_IMAGE], {"type": "Cropping2D", "cropping": [1, 2]}),
    ("upsampling", [_IMAGE], {"type": "UpSampling2D", "size": [2, 3]}),
    ("upsampling smooth", [_IMAGE], {"type": "UpSampling2D", "interpolation": "bilinear"}),
    ("activation", [_VECTOR], {"type": "Activation", "activation": "softmax"}),
    ("relu", [_VECTOR], {"type": "ReLU", "max_value": 6}),
    ("leaky relu", [_VECTOR], {"type": "LeakyReLU"}),
    ("elu", [_VECTOR], {"type": "ELU"}),
    ("prelu", [_IMAGE], {"type": "PReLU", "shared_axes": [1, 2]}),
    ("prelu apart", [_SEQUENCE], {"type": "PReLU"}),
    ("softmax", [_SEQUENCE], {"type": "Softmax"}),
    ("rescaling", [_IMAGE], {"type": "Rescaling", "scale": 0.5, "offset": -1}),
    ("rescaling each", [_IMAGE], {"type": "Rescaling", "scale": [1, 2, 3], "offset": [3, 2, 1]}),
    (
        "normalization",
        [_IMAGE],
        {"type": "Normalization", "mean": [1, 2, 3], "variance": [1, 2, 4]},
    ),
    ("normalization all", [_VECTOR], {"type": "Normalization", "mean": 1, "variance": 2}),
    ("resizing", [_IMAGE], {"type": "Resizing", "height": 5, "width": 12}),
    ("flip", [_IMAGE], {"type": "RandomFlip"}),
    (
        "translation",
        [_IMAGE],
        {"type": "RandomTranslation", "height_factor": 0.2, "width_factor": [-0.1, 0.3]},
    ),
    ("rotation", [_IMAGE], {"type": "RandomRotation", "factor": 0.2, "fill_mode": "constant"}),
    ("zoom", [_IMAGE], {"type": "RandomZoom", "height_factor": 0.2}),
    ("contrast", [_IMAGE], {"type": "RandomContrast", "factor": 0.3}),
]


def model_with(shapes: list[tuple[int, ...]], layer: Document) -> Document:
    """A model of `layer` alone behind, and before, what has weights to train."""
    whole = layer["type"] == "Embedding"
    names = [f"in{number}" for number in range(len(shapes))]
    before = [
        {"name": f"before{number}", "type": "PReLU", "from": [name]}
        for number, name in enumerate(names)
    ]
    return {
        "inputs": [
            {"name": name, "shape": list(shape), "dtype": "int32" if whole else "float32"}
            for name, shape in zip(names, shapes, strict=True)
        ],
        "layers": [
            *([] if whole else before),
            {**layer, "name": "it", "from": names if whole else [one["name"] for one in before]},
        ],
        "outputs": ["it"],
    }


def classifier(**training: Any) -> Document:
    """A manifest of a small network for images of four classes."""
    return copy.deepcopy(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": [8, 8, 1], "dtype": "uint8"}],
                "layers": [
                    {"name": "scale", "type": "Rescaling", "scale": 0.00390625},
                    {
                        "name": "conv",
                        "type": "Conv2D",
                        "filters": 4,
                        "kernel_size": 3,
                        "kernel_regularizer": {"type": "L2", "l2": 0.01},
                    },
                    {"name": "norm", "type": "BatchNormalization"},
                    {"name": "relu", "type": "ReLU"},
                    {"name": "pool", "type": "MaxPooling2D"},
                    {"name": "flat", "type": "Flatten"},
                    {"name": "drop", "type": "Dropout", "rate": 0.25},
                    {"name": "logits", "type": "Dense", "units": 4},
                ],
                "outputs": ["logits"],
            },
            "data": {
                "train": {
                    "kind": "npz",
                    "path": FOLDER,
                    "records": 1000,
                    "features": {
                        "image": {"dtype": "uint8", "shape": [8, 8, 1]},
                        "label": {"dtype": "int64", "shape": []},
                    },
                    "inputs": ["image"],
                    "target": "label",
                }
            },
            "training": {
                "batch": 32,
                "until": {"epochs": 2},
                "steps_per_segment": 10,
                "seed": 42,
                "optimizer": {"type": "Adam", "learning_rate": 0.001},
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
                "metrics": [{"type": "SparseCategoricalAccuracy"}],
                **training,
            },
        }
    )


def manifest(**training: Any) -> Manifest:
    return Manifest.of(classifier(**training))
