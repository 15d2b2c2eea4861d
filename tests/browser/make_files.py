"""Writes models and data of each kind: `python -m tests.browser.make_files FOLDER`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from trainyard.datasets.example import encode_example
from trainyard.datasets.tfrecord import frame

_MAKE_MODELS = Path(__file__).resolve().parents[1] / "dapp" / "make_models.py"


def main(folder: Path) -> None:
    subprocess.run(
        [sys.executable, str(_MAKE_MODELS), str(folder)], check=True, capture_output=True
    )
    chance = np.random.default_rng(7)
    digits = chance.integers(0, 255, (40, 8, 8), np.uint8)
    np.savez(folder / "digits.npz", x=digits, y=np.arange(40) % 10)
    # No name of it is one that targets often have.
    np.savez(folder / "plain.npz", ends=np.arange(40) % 2, pixels=digits)
    # More than what is sent in one piece.
    np.savez(folder / "large.npz", x=chance.random((1_300, 1_024)), y=np.arange(1_300) % 3)
    for label, colour in {"cats": (200, 120, 40), "dogs": (40, 90, 200)}.items():
        (folder / "pets" / label).mkdir(parents=True)
        for number in range(6):
            picture = Image.new("RGB", (24, 20), (*colour[:2], colour[2] + number))
            picture.save(folder / "pets" / label / f"{number}.png")
    records = (
        frame(encode_example({"x": chance.random(4, np.float32), "label": np.array([n % 3])}))
        for n in range(60)
    )
    (folder / "flowers.tfrecord").write_bytes(b"".join(records))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
