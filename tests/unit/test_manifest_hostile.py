"""Manifests of strangers: refused in their own words, in little memory, and without TensorFlow."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.manifests import Document, classifier
from trainyard.protocol.manifest import Manifest, ManifestError

Change = Callable[[Document], object]
# Of the whole process, and its interpreter with it.
MOST_KB = 100 * 1024
# Five times what the slowest takes, and twenty times what most do, on a machine that is busy; a
# megabyte has to be read to be refused.
MOST_CPU_S, MOST_CPU_S_A_MEGABYTE = 0.015, 0.32


def layers(document: Document) -> list[Document]:
    found: list[Document] = document["model"]["layers"]
    return found


def changed(change: Change) -> bytes:
    document = classifier()
    change(document)
    return json.dumps(document).encode()


def last(**fields: Any) -> Change:
    return lambda document: layers(document)[-1].update(fields)


def training(**fields: Any) -> Change:
    return lambda document: document["training"].update(fields)


def train(**fields: Any) -> Change:
    return lambda document: document["data"]["train"].update(fields)


def learning_rate(value: Any) -> Change:
    return lambda document: document["training"]["optimizer"].update(learning_rate=value)


def add(*more: Document) -> Change:
    def change(document: Document) -> None:
        layers(document).extend(more)
        document["model"]["outputs"] = [more[-1]["name"]]

    return change


def zoomed(**fields: Any) -> Change:
    return lambda document: layers(document).insert(
        0, {"name": "zoom", "type": "RandomZoom", **fields}
    )


CHANGES: dict[str, tuple[Change, str, str]] = {
    "a billion units": (last(units=10**9), "model.layers[7].units", "less than or equal to"),
    "no units": (last(units=0), "model.layers[7].units", "greater than or equal to 1"),
    "units as text": (last(units="64"), "model.layers[7].units", "valid integer"),
    "units as truth": (last(units=True), "model.layers[7].units", "valid integer"),
    "a million units after a million": (
        add(
            {"name": "wide", "type": "Dense", "units": 10**6},
            {"name": "wider", "type": "Dense", "units": 10**6},
        ),
        "model",
        "parameters, where at most 200000000",
    ),
    "values without weights": (
        add(
            {"name": "long", "type": "RepeatVector", "n": 10**6},
            {"name": "longer", "type": "ZeroPadding1D", "padding": 10**6},
            {"name": "sum", "type": "Dense", "units": 100},
        ),
        "model",
        "values held for each example",
    ),
    "a misspelt layer": (last(type="Dence"), "model.layers[7].type", "did you mean 'Dense'?"),
    "code": (last(type="Lambda"), "model.layers[7].type", "'Lambda' is supported; it runs code"),
    "a module": (last(type="os.system"), "model.layers[7].type", "no type 'os.system'"),
    "no type": (lambda document: layers(document)[7].pop("type"), "model.layers[7]", "'type'"),
    "a misspelt field": (last(unit=3), "model.layers[7].unit", "did you mean 'units'?"),
    "a field of code": (last(registered_name="x"), "model.layers[7].registered_name", "no field"),
    "a misspelt activation": (last(activation="rellu"), "model.layers[7].activation", "'relu'"),
    "a misspelt initialiser": (
        last(kernel_initializer={"type": "HeNormale"}),
        "model.layers[7].kernel_initializer.type",
        "did you mean 'HeNormal'?",
    ),
    "recursion": (
        add(
            {
                "name": "both",
                "type": "Bidirectional",
                "layer": {"type": "Bidirectional", "layer": {"type": "LSTM", "units": 1}},
            }
        ),
        "model.layers[8].layer.type",
        "no type 'Bidirectional'",
    ),
    "a path as a name": (last(name="../../etc"), "model.layers[7].name", "match pattern"),
    "a line end in a name": (last(name="a\n"), "model.layers[7].name", "match pattern"),
    "a name twice": (last(name="conv"), "model.layers[7].name", "'conv' is taken"),
    "the name of an input": (last(name="image"), "model.inputs[0].name", "'image' is taken"),
    "a cycle": (last(**{"from": ["logits"]}), "model.layers[7].from", "is not before this layer"),
    "a forward reference": (
        lambda document: layers(document)[1].update({"from": ["pool"]}),
        "model.layers[1].from",
        "'pool' is not before this layer",
    ),
    "a reference to nothing": (last(**{"from": ["x"]}), "model.layers[7].from", "is no input or"),
    "a layer for nothing": (
        last(**{"from": ["flat"]}),
        "model.layers[6]",
        "nothing reads 'drop'",
    ),
    "two outputs": (
        lambda document: document["model"].update(outputs=["logits", "drop"]),
        "model.outputs",
        "2 outputs, where one is trained: concatenate them, or make a model of each",
    ),
    "more noise than Keras has": (
        add({"name": "noise", "type": "GaussianNoise", "stddev": 1.5}),
        "model.layers[8].stddev",
        "less than or equal to 1",
    ),
    "a bias of a matrix": (
        last(bias_initializer={"type": "Identity"}),
        "model.layers[7].bias_initializer",
        "cannot begin with Identity, which is for a matrix: the bias has rank 1; use Ones",
    ),
    "a kernel of a matrix": (
        lambda document: layers(document)[1].update(kernel_initializer={"type": "Identity"}),
        "model.layers[1].kernel_initializer",
        "the kernel has rank 4; use Orthogonal",
    ),
    "an orthogonal vector": (
        lambda document: layers(document)[2].update(gamma_initializer={"type": "Orthogonal"}),
        "model.layers[2].gamma_initializer",
        "a matrix or more: the gamma has rank 1; use RandomNormal",
    ),
    "an orthogonal vector within": (
        add(
            {"name": "rows", "type": "Reshape", "target_shape": [2, 2]},
            {
                "name": "both",
                "type": "Bidirectional",
                "layer": {"type": "LSTM", "units": 2, "bias_initializer": {"type": "Orthogonal"}},
            },
        ),
        "model.layers[9].layer.bias_initializer",
        "the bias has rank 1",
    ),
    "an axis beyond the weight": (
        last(kernel_constraint={"type": "MaxNorm", "axis": 2}),
        "model.layers[7].kernel_constraint.axis",
        "no axis 2 in its kernel, which has rank 2; use axes below 2",
    ),
    "an axis beyond one of the weights": (
        add(
            {"name": "rows", "type": "Reshape", "target_shape": [2, 2]},
            {
                "name": "heads",
                "type": "MultiHeadAttention",
                "num_heads": 1,
                "key_dim": 2,
                "bias_constraint": {"type": "UnitNorm", "axis": [0, 1]},
                "from": ["rows", "rows"],
            },
        ),
        "model.layers[9].bias_constraint.axis",
        "no axis 1 in its bias, which has rank 1",
    ),
    "an axis of a number": (
        lambda document: document["model"].update(
            inputs=[{"name": "number", "shape": []}],
            layers=[
                {"name": "it", "type": "PReLU", "alpha_constraint": {"type": "UnitNorm"}},
            ],
            outputs=["it"],
        ),
        "model.layers[0].alpha_constraint.axis",
        "no axis 0 in its alpha, which has rank 0; use NonNeg",
    ),
    "an axis twice": (
        last(kernel_constraint={"type": "MaxNorm", "axis": [1, 1]}),
        "model.layers[7].kernel_constraint.axis",
        "an axis is named twice in [1, 1]",
    ),
    "a zoom to nothing": (
        zoomed(height_factor=-1),
        "model.layers[0].height_factor",
        "greater than -1",
    ),
    "a zoom to nothing from something": (
        zoomed(height_factor=0.1, width_factor=[-1, 0.5]),
        "model.layers[0].width_factor[0]",
        "greater than -1",
    ),
    "padding through a softmax": (
        lambda document: document["model"].update(
            inputs=[{"name": "words", "shape": [6], "dtype": "int32"}],
            layers=[
                {
                    "name": "embedding",
                    "type": "Embedding",
                    "input_dim": 9,
                    "output_dim": 4,
                    "mask_zero": True,
                },
                {"name": "softmax", "type": "Softmax"},
                {"name": "lstm", "type": "LSTM", "units": 4},
            ],
            outputs=["lstm"],
        ),
        "model.layers[1]",
        "Softmax does not heed the padding of mask_zero; use Activation of softmax",
    ),
    "many layers": (
        add(*({"name": f"r{n}", "type": "ReLU"} for n in range(600))),
        "model.layers",
        "at most 512 items",
    ),
    "a kernel over the image": (
        lambda document: layers(document)[1].update(kernel_size=50),
        "model.layers[1]",
        "nothing is left of float32[8, 8, 1]",
    ),
    "integers into a convolution": (
        lambda document: layers(document).pop(0),
        "model.layers[0]",
        "put a Rescaling layer before it",
    ),
    "a rank too many": (
        lambda document: document["model"]["inputs"][0].update(shape=[1] * 9),
        "model.inputs[0].shape",
        "at most 4 items",
    ),
    "steps beyond count": (training(until={"steps": 10**12}), "training.until.steps", "1000000000"),
    "epochs beyond count": (
        lambda document: (
            train(records=10**12)(document),
            training(until={"epochs": 10**6})(document),
        ),
        "training.until",
        "steps, where at most",
    ),
    "more segments than a journal holds": (
        training(until={"steps": 100_001}, steps_per_segment=1),
        "training.steps_per_segment",
        "make them longer",
    ),
    "no end": (training(until={}), "training.until", "either epochs or steps"),
    "a seed that JSON rounds": (training(seed=2**53), "training.seed", "9007199254740991"),
    "a negative rate": (learning_rate(-1), "training.optimizer.learning_rate", "greater than"),
    "an endless rate": (learning_rate(1e300), "training.optimizer.learning_rate", "less than"),
    "a misspelt schedule": (
        learning_rate({"type": "CosinDecay"}),
        "training.optimizer.learning_rate.type",
        "did you mean 'CosineDecay'?",
    ),
    "a schedule of no steps": (
        learning_rate({"type": "CosineDecay", "initial_learning_rate": 1, "decay_steps": 0}),
        "training.optimizer.learning_rate.decay_steps",
        "greater than or equal to 1",
    ),
    "two ways to clip": (
        training(optimizer={"type": "SGD", "clipnorm": 1, "clipvalue": 1}),
        "training.optimizer",
        "one of clipnorm, global_clipnorm and clipvalue",
    ),
    "another optimiser": (training(optimizer={"type": "Lion"}), "training.optimizer.type", "AdamW"),
    "a metric that does not add up": (
        training(metrics=[{"type": "AUC"}]),
        "training.metrics[0].type",
        "no mean over examples",
    ),
    "a metric twice": (
        training(metrics=[{"type": "SparseCategoricalAccuracy"}] * 2),
        "training.metrics[1]",
        "is taken",
    ),
    "workers alone": (training(workers=2), "training.workers", "use 'sync' or 'rounds'"),
    "an uneven batch": (training(mode="sync", workers=3), "training.batch", "use 30"),
    "nothing to score by": (training(mode="async"), "training.mode", "give data.test"),
    "rounds of nothing": (training(mode="rounds"), "training.rounds", "mode 'rounds' has"),
    "a batch over all": (training(batch=2000), "training.batch", "more than the 1000 records"),
    "stopping by nothing": (
        training(early_stopping={"monitor": "val_loss"}),
        "training.early_stopping",
        "without a validation part",
    ),
    "stopping by training": (
        training(early_stopping={"monitor": "loss"}, validation={"split": 0.1}),
        "training.early_stopping.monitor",
        "'loss' is none of val_loss",
    ),
    "weights of no class": (training(class_weight={"9": 1}), "training.class_weight", "no class 9"),
    "weights of a number": (
        training(loss={"type": "MeanSquaredError"}, class_weight={"1": 2}),
        "training.class_weight",
        "MeanSquaredError has no classes; use a weight feature",
    ),
    "weights of many labels": (
        lambda document: (
            document["data"]["train"]["features"]["label"].update(dtype="float32", shape=[4]),
            training(loss={"type": "BinaryCrossentropy"}, metrics=[], class_weight={"1": 2})(
                document
            ),
        ),
        "training.class_weight",
        "one example has many classes here; use a weight feature",
    ),
    "a class by a path": (
        training(class_weight={"../1": 1}),
        "training.class_weight.../1",
        "match pattern",
    ),
    "a file": (train(path="file:///etc/passwd"), "data.train.path", "is no ipfs://<cid>"),
    "a bare path": (train(path="/etc/passwd"), "data.train.path", "is no ipfs://<cid>"),
    "a step out": (
        lambda document: train(path=document["data"]["train"]["path"] + "/../x")(document),
        "data.train.path",
        "step out of its folder",
    ),
    "an escaped step out": (
        lambda document: train(path=document["data"]["train"]["path"] + "/%2e%2e/x")(document),
        "data.train.path",
        "is no ipfs://<cid>",
    ),
    "a feature that is none": (train(target="y"), "data.train.target", "none of the features"),
    "a feature with a path": (
        train(features={"../x": {"dtype": "int64"}, "y": {"dtype": "int64"}}),
        "data.train.features.../x",
        "match pattern",
    ),
    "labels as fractions": (
        lambda document: document["data"]["train"]["features"]["label"].update(dtype="float32"),
        "data.train.target",
        "SparseCategoricalCrossentropy needs integer targets",
    ),
    "another image": (
        lambda document: document["data"]["train"]["features"]["image"].update(shape=[9, 9, 1]),
        "data.train.inputs[0]",
        "is uint8[9, 9, 1], the input 'image' uint8[8, 8, 1]",
    ),
    "another loss": (
        training(loss={"type": "MeanSquaredError"}, metrics=[]),
        "data.train.target",
        "use the Sparse… one",
    ),
    "a version to come": (lambda document: document.update(version=2), "version", "no value '2'"),
    "a misspelt part": (lambda document: document.update(trainig={}), "trainig", "'training'"),
    "no training": (lambda document: document.pop("training"), "training", "is missing"),
}

TEXTS: dict[str, tuple[bytes, str]] = {
    "NaN": (changed(learning_rate(float("nan"))), "NaN is no number"),
    "infinity": (changed(learning_rate(float("inf"))), "Infinity is no number"),
    "infinity by digits": (
        changed(learning_rate(1)).replace(b'"learning_rate": 1', b'"learning_rate": 1e999'),
        "learning_rate",
    ),
    "a deep list": (b"[" * 100_000, "nested over 32 deep"),
    "a deep list that ends": (b"[" * 500 + b"]" * 500, "nested over 32 deep"),
    "a deep object": (b'{"a":' * 100 + b"1" + b"}" * 100, "nested over 32 deep"),
    "ten megabytes": (b'{"a":"' + b"x" * 10_000_000 + b'"}', "at most 1048576 are read"),
    "many small objects": (b"[" + b"{}," * 340_000 + b"{}]", "manifest"),
    "many small layers": (
        changed(lambda document: document["model"].update(layers=[{}] * 250_000)),
        "250000 items in one place",
    ),
    "many fields": (
        changed(lambda document: document.update({f"f{n}": 0 for n in range(80_000)})),
        "members in one place",
    ),
    "many fields in many layers": (
        changed(
            lambda document: document["model"].update(
                layers=[
                    {"type": "ReLU", "name": "r", **{f"f{n}": 0 for n in range(150)}}
                    for _ in range(512)
                ]
            )
        ),
        "model.layers[0].f0: no field 'f0'",
    ),
    "many wrong numbers": (
        changed(
            add(
                {
                    "name": "n",
                    "type": "Normalization",
                    "mean": [0] * 65_536,
                    "variance": [-1] * 65_536,
                }
            )
        ),
        "model.layers[8].variance",
    ),
    "a long type": (changed(last(type="D" * 900_000)), "no type 'DDD"),
    "a long number": (b'{"version":' + b"1" * 100_000 + b"}", "not JSON"),
    "a member twice": (b'{"version": 1, "version": 1}', "'version' is given twice"),
    "a member twice, escaped": (b'{"version": 1, "v\\u0065rsion": 1}', "'version' is given twice"),
    "no JSON": (b"version: 1", "not JSON"),
    "no UTF-8": (b'{"version": "\xff"}', "not JSON"),
    "half a character": (b'{"version": "\\ud800"}', "version"),
    "nothing": (b"", "not JSON"),
    "a list": (b"[]", "should be an object"),
    "null": (b"null", "should be an object"),
}

# One process for all, since each would cost more to start than to refuse. The clock is that of the
# process, so that a busy machine does not matter; the peak is the kernel's, begun anew each time.
REFUSE = """
import gc, json, sys, time
from trainyard.protocol.manifest import Manifest, ManifestError

def refuse(text):
    began = time.process_time()
    try:
        Manifest.parse(text)
    except ManifestError as error:
        return len(str(error)), time.process_time() - began

def peak_kb():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(peak.split()[1])

refuse(b"{}")
while head := sys.stdin.buffer.readline():
    text = sys.stdin.buffer.read(int(head))
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    length, cpu_s = refuse(text)
    print(json.dumps([length, cpu_s, peak_kb()]))
print(json.dumps(sorted({"tensorflow", "keras", "numpy"} & set(sys.modules))))
"""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What it took to refuse one manifest."""

    text_bytes: int
    length: int
    cpu_s: float
    peak_kb: int

    @property
    def most_cpu_s(self) -> float:
        return MOST_CPU_S if self.text_bytes < 1 << 16 else MOST_CPU_S_A_MEGABYTE


@pytest.fixture(scope="module")
def refusals() -> tuple[dict[str, Refusal], list[str]]:
    """How each manifest of this file is refused, and which heavy modules that took."""
    texts = {name: changed(change) for name, (change, _, _) in CHANGES.items()}
    texts |= {name: text for name, (text, _) in TEXTS.items()}
    told = b"".join(b"%d\n%b" % (len(text), text) for text in texts.values())
    ended = subprocess.run(
        [sys.executable, "-c", REFUSE], input=told, capture_output=True, check=True
    )
    *lines, heavy = map(json.loads, ended.stdout.splitlines())
    found = {
        name: Refusal(len(text), *line)
        for (name, text), line in zip(texts.items(), lines, strict=True)
    }
    return found, heavy


@pytest.mark.parametrize(("change", "path", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_wrong_manifest_is_refused_with_the_place_and_the_reason(
    change: Change, path: str, reason: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        Manifest.parse(changed(change))

    assert caught.value.path == path
    assert reason in caught.value.reason
    assert "function-" not in str(caught.value)


@pytest.mark.parametrize(("text", "reason"), TEXTS.values(), ids=TEXTS)
def test_a_hostile_text_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Manifest.parse(text)

    assert reason in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", [*CHANGES, *TEXTS])
def test_refusing_takes_little_time_and_memory(
    refusals: tuple[dict[str, Refusal], list[str]], name: str
) -> None:
    refusal = refusals[0][name]

    assert refusal.cpu_s < refusal.most_cpu_s
    assert refusal.peak_kb < MOST_KB
    assert refusal.length < 1000


def test_refusing_takes_no_tensorflow(refusals: tuple[dict[str, Refusal], list[str]]) -> None:
    assert refusals[1] == []
