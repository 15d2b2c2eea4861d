"""Add CIFAR-10 to the content store, under the CIDs that `cnn.json` names.

    .venv/bin/python examples/cifar10/prepare.py

Keras downloads it, once, from where it was published. With TRAINYARD_KUBO or TRAINYARD_STORE set,
that is where it goes.
"""

from typing import Any

from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import add_arrays


def main() -> None:
    train, test = download()
    content = open_content(ContentSettings())
    for part, (images, labels) in {"train": train, "test": test}.items():
        cid = add_arrays(content, {"image": images, "label": labels.reshape(-1)}).cid
        print(f"{part} ipfs://{cid}")
    content.close()


def download() -> Any:
    """Two pairs of images and labels."""
    import keras

    try:
        return keras.datasets.cifar10.load_data()
    except Exception as error:
        raise SystemExit(
            f"CIFAR-10 is not here, and Keras cannot download it ({error}): come back with a "
            "network"
        ) from error


if __name__ == "__main__":
    main()
