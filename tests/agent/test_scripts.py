"""A file of Python as what a task is posted of: run in a sandbox, and believed in nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.face import script_sandbox
from trainyard.sdk.composing import Shape, compose_sections
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.scripts import Script, script_of

_PATIENCE_S = 120.0
_GOOD = """
import keras
import numpy as np
import tensorflow as tf
print('{"error": "garbage"}')
import os
os.write(1, b'{"model": 1}\\n' * 1000)
numbers = np.load("numbers.npy")
left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
both = keras.layers.Concatenate(name="both")([left, right])
model = keras.Model([left, right], keras.layers.Dense(2, name="out")(both))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x = {"right": numbers[:, 3:], "left": tf.random.normal([12, 3])}
data = {
    "x": x,
    "y": [0, 1] * 6,
    "sample_weight": np.ones(12),
    "validation_data": ([numbers[:4, :3], numbers[:4, 3:]], np.zeros(4, np.int64)),
}
if __name__ == "__main__":
    raise SystemExit("only when it is run itself")
"""


def written(folder: Path, code: str) -> Path:
    path = folder / "train.py"
    path.write_text(code)
    return path


def run(folder: Path, code: str, seconds: float = _PATIENCE_S, **more: object) -> Script:
    return script_of(written(folder, code), script_sandbox(seconds), **more)  # type: ignore[arg-type]


def test_a_script_says_model_and_data_whatever_it_prints(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=(12, 5)).astype(np.float32)
    np.save(tmp_path / "numbers.npy", numbers)

    found = run(tmp_path, _GOOD, files=[tmp_path / "numbers.npy"])

    train, tried = found.train, found.validation
    assert train is not None
    assert tried is not None
    np.testing.assert_array_equal(train.inputs[1], numbers[:, 3:])
    assert [one.shape for one in (*train.inputs, train.y)] == [(12, 3), (12, 2), (12,)]
    np.testing.assert_array_equal(tried.inputs[0], numbers[:4, :3])
    assert (train.weight is None, tried.weight is None) == (False, True)
    content = Content(EmbeddedStore(tmp_path / "store"))
    manifest = compose_sections(
        content,
        found.model,
        found.training,
        train.x,
        train.y,
        Shape(epochs=2, batch_size=4),
        validation_data=(tried.x, tried.y),
        sample_weight=train.weight,
    )
    content.close()
    assert (manifest.plan.steps, manifest.data.train.records) == (6, 12)
    assert manifest.data.train.weight == "weight"
    assert manifest.training.loss is not None
    assert manifest.training.loss.type == "SparseCategoricalCrossentropy"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = 1", "it defines no 'model': name your compiled Keras model so"),
        ("a = 1\nb = a / 0", "it does not run: line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "it does not run: line 2: SystemExit: 3"),
        ("model = (", "it does not run: line 1: SyntaxError"),
        ("import os\nos._exit(0)", "the engine could make nothing of it"),
        ("import os\nos.abort()", "killed by SIGABRT"),
        ("model = 7", "its 'model' is a int, and no keras.Model"),
        ("import urllib.request as u\nu.urlopen('http://127.0.0.1:1')", "line 2: .*no network"),
        (
            "import os, json\nfor fd in range(3, 30):\n"
            "    try: os.write(fd, b'[' * 100000 + b'\\n')\n"
            "    except OSError: pass\n"
            "os._exit(0)",
            "the engine could make nothing of it",
        ),
    ],
)
def test_a_script_that_is_none_is_refused_with_the_reason(
    tmp_path: Path, code: str, why: str
) -> None:
    with pytest.raises(RefusedError, match=rf"train\.py: .*{why}"):
        run(tmp_path, code)


def test_a_script_reads_no_key_and_leaves_nothing(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"crypto": "secret"}))
    mark = tmp_path / "mark"

    with pytest.raises(RefusedError, match=r"line 1: FileNotFoundError.*no keys") as refused:
        run(tmp_path, f"print(open({str(key)!r}).read())")
    with pytest.raises(RefusedError, match=r"line 1: (FileNotFound|OS|Permission)Error"):
        run(tmp_path, f"open({str(mark)!r}, 'w')")

    assert "secret" not in str(refused.value)
    assert not mark.exists()


def test_a_script_that_loops_for_ever_is_ended(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"train\.py: the task ran for more than 2 s"):
        run(tmp_path, "while True: pass", seconds=2.0)


# What it says by itself, in the place of what we would have said of it.
_FORGED = """
import json, os
MADE = [one for one in __import__("sys").argv]
job = json.load(open(MADE[-1]))
made = job["made"]
{do}
said = {{"model": {{"inputs": [{{"name": "a", "shape": [2]}}],
                   "layers": [{{"type": "Dense", "name": "out", "units": 2}}],
                   "outputs": ["out"]}},
        "training": {{"optimizer": {{"type": "SGD", "learning_rate": 0.1}},
                     "loss": {{"type": "MeanSquaredError"}}, "workers": 64}},
        "train": {{"inputs": [0], "target": 1}}, "validation": None}}
for fd in range(3, 30):
    try:
        os.write(fd, json.dumps(said).encode() + b"\\n")
    except OSError:
        pass
os._exit(0)
"""
_LINK = "for n in (0, 1): os.symlink(SECRET, f'{made}/000{n}.npy')"
_PIPE = "for n in (0, 1): os.mkfifo(f'{made}/000{n}.npy')"
_HUGE = """
import numpy as np
for n in (0, 1):
    with open(f'{made}/000{n}.npy', 'wb') as file:
        header = {'descr': '<f4', 'fortran_order': False, 'shape': (1 << 40, 2)}
        np.lib.format.write_array_header_1_0(file, header)
"""
_PICKLE = """
import numpy as np
for n in (0, 1):
    np.save(f'{made}/000{n}.npy', np.array([{}], dtype=object), allow_pickle=True)
"""


@pytest.mark.parametrize("do", [_LINK, _PIPE, _HUGE, _PICKLE], ids=["link", "pipe", "huge", "code"])
def test_what_a_script_forges_is_not_read(tmp_path: Path, do: str) -> None:
    secret = tmp_path / "secret.npy"
    np.save(secret, np.zeros((4, 2), np.float32))

    with pytest.raises(RefusedError, match="what it left behind is no data of a script"):
        run(tmp_path, _FORGED.format(do=do.replace("SECRET", repr(str(secret)))))


def test_of_what_a_script_says_itself_only_its_own_sections_are_taken(tmp_path: Path) -> None:
    arrays = (
        "import numpy as np\nfor n in (0, 1): np.save(f'{made}/000{n}.npy', np.zeros((4, 2), 'f4'))"
    )

    found = run(tmp_path, _FORGED.format(do=arrays))

    assert found.training.keys() == {"optimizer", "loss"}
    assert found.train is not None
    assert found.train.x.shape == (4, 2)
