"""Small networks on made-up data, as manifests: one of each kind of trouble."""

from pathlib import Path
from typing import Any

import numpy as np

from trainyard.engine.material import Files
from trainyard.protocol.manifest import Manifest

RECORDS = 96
# The address is what a manifest must have; the tests hand the files over themselves.
ADDRESS = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"

LENET = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {"name": "c1", "type": "Conv2D", "filters": 4, "kernel_size": 5, "activation": "relu"},
    {"name": "p1", "type": "AveragePooling2D"},
    {"name": "c2", "type": "Conv2D", "filters": 6, "kernel_size": 3, "activation": "relu"},
    {"name": "flat", "type": "Flatten"},
    {"name": "d1", "type": "Dense", "units": 16, "activation": "relu"},
    {"name": "out", "type": "Dense", "units": 10},
]
MLP = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {"name": "flat", "type": "Flatten"},
    {"name": "d1", "type": "Dense", "units": 24, "activation": "relu"},
    {"name": "out", "type": "Dense", "units": 10},
]
BATCH_NORM = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {"name": "c1", "type": "Conv2D", "filters": 4, "kernel_size": 3, "use_bias": False},
    {"name": "norm", "type": "BatchNormalization"},
    {"name": "act", "type": "ReLU"},
    {"name": "pool", "type": "MaxPooling2D"},
    {"name": "flat", "type": "Flatten"},
    {"name": "drop", "type": "Dropout", "rate": 0.4},
    {
        "name": "out",
        "type": "Dense",
        "units": 10,
        "kernel_regularizer": {"type": "L2", "l2": 0.0001},
    },
]
LSTM = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {"name": "rows", "type": "Reshape", "target_shape": [12, 12]},
    {"name": "lstm", "type": "LSTM", "units": 8},
    {"name": "out", "type": "Dense", "units": 10},
]
# Brightnesses as words: each row is looked up, read one after the other, and looked back at.
WORDS = [
    {"name": "image_rows", "type": "Reshape", "target_shape": [12, 12]},
    {"name": "words", "type": "Embedding", "input_dim": 256, "output_dim": 3},
    {"name": "rows", "type": "Reshape", "target_shape": [12, 36]},
    {"name": "gru", "type": "GRU", "units": 6, "return_sequences": True},
    {
        "name": "heads",
        "type": "MultiHeadAttention",
        "num_heads": 2,
        "key_dim": 3,
        "dropout": 0.1,
        "from": ["gru", "gru"],
    },
    {"name": "sum", "type": "Add", "from": ["gru", "heads"]},
    {"name": "norm", "type": "LayerNormalization"},
    {"name": "mean", "type": "GlobalAveragePooling1D"},
    {"name": "out", "type": "Dense", "units": 10},
]
# All that varies examples or what is made of them, each by a seed of its own.
AUGMENTED = [
    {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
    {"name": "flip", "type": "RandomFlip"},
    {"name": "shift", "type": "RandomTranslation", "height_factor": 0.1, "width_factor": 0.2},
    {"name": "turn", "type": "RandomRotation", "factor": 0.1},
    {"name": "zoom", "type": "RandomZoom", "height_factor": 0.2},
    {"name": "contrast", "type": "RandomContrast", "factor": 0.3, "value_range": [0, 1]},
    {"name": "noise", "type": "GaussianNoise", "stddev": 0.1},
    {"name": "c1", "type": "Conv2D", "filters": 4, "kernel_size": 3, "activation": "relu"},
    {"name": "drop", "type": "SpatialDropout2D", "rate": 0.3},
    {"name": "flat", "type": "Flatten"},
    {"name": "out", "type": "Dense", "units": 10},
]
# Dark pixels as padding, which the words after it do not count.
MASKED = [
    {"name": "pixels", "type": "Reshape", "target_shape": [144]},
    {"name": "words", "type": "Embedding", "input_dim": 256, "output_dim": 3, "mask_zero": True},
    {"name": "drop", "type": "SpatialDropout1D", "rate": 0.2},
    {"name": "lstm", "type": "LSTM", "units": 4, "dropout": 0.1, "recurrent_dropout": 0.2},
    {"name": "out", "type": "Dense", "units": 10},
]
NETS = {"lenet": LENET, "mlp": MLP, "batch_norm": BATCH_NORM, "lstm": LSTM}
# Too slow to be made ready for clusters of all sizes.
MORE_NETS = {"words": WORDS, "augmented": AUGMENTED, "masked": MASKED}


def write_data(folder: Path, records: int = RECORDS) -> Files:
    """Images and labels by arithmetic, so that they are the same everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.arange(records * 144, dtype=np.uint64)
    pixels = (numbers * np.uint64(2654435761) >> np.uint64(7)) % np.uint64(256)
    images = pixels.astype(np.uint8).reshape(records, 12, 12, 1)
    labels = (np.arange(records) * 7 % 10).astype(np.int64)
    # Something that can be learned: the label is a bright row.
    images[np.arange(records), labels] = 255
    np.save(folder / "image.npy", images)
    np.save(folder / "label.npy", labels)
    return Files(train=folder)


def source(records: int = RECORDS) -> dict[str, Any]:
    return {
        "kind": "npz",
        "path": ADDRESS,
        "records": records,
        "features": {
            "image": {"dtype": "uint8", "shape": [12, 12, 1]},
            "label": {"dtype": "int64", "shape": []},
        },
        "inputs": ["image"],
        "target": "label",
    }


def manifest_of(net: str = "mlp", records: int = RECORDS, **changes: Any) -> Manifest:
    training: dict[str, Any] = {
        "mode": "single",
        "batch": 24,
        "until": {"steps": 12},
        "steps_per_segment": 3,
        "seed": 11,
        "optimizer": {"type": "Adam", "learning_rate": 0.01},
        "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
        "metrics": [{"type": "SparseCategoricalAccuracy", "name": "accuracy"}],
        **changes,
    }
    if training.get("workers", 1) > 1:
        training["mode"] = changes.get("mode", "sync")
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": [12, 12, 1], "dtype": "uint8"}],
                "layers": (NETS | MORE_NETS)[net],
                "outputs": ["out"],
            },
            "data": {"train": source(records)},
            "training": training,
        }
    )


def rounds_manifest_of(net: str, workers: int, **changes: Any) -> Manifest:
    """Two rounds, with deltas that are rounded to eight bits; some nets keep their optimiser's."""
    inner = "fresh" if net in ("lenet", "lstm") else "kept"
    rounds = {"local_steps": 2, "inner": inner, "compression": "int8"}
    length: dict[str, Any] = {"until": {"steps": 4}, "steps_per_segment": 2}
    return manifest_of(net, mode="rounds", workers=workers, rounds=rounds, **length, **changes)
