"""Train one of the six networks on the market, by `trainyard.fit`, and try it on the test images.

    .venv/bin/trainyard devnet up --agents 3
    .venv/bin/python -m examples.mnist.train --net lenet5
    .venv/bin/python -m examples.mnist.train --net mlp300 --small  # some hundred images

The network is that of the manifest; what is trained is a Keras model like any other.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import keras

import trainyard
from examples.mnist.prepare import load_mnist
from trainyard.engine.program import build_model
from trainyard.protocol.manifest import Manifest

NETS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.json"))}
SMALL_TRAIN, SMALL_TEST = 600, 200


def main() -> None:
    arguments = parse_arguments()
    mnist = load_mnist()
    train, test = mnist["train"], mnist["test"]
    if arguments.small:
        train = {name: values[:SMALL_TRAIN] for name, values in train.items()}
        test = {name: values[:SMALL_TEST] for name, values in test.items()}
    model = compiled(arguments.net)
    history = trainyard.fit(
        model,
        train["image"],
        train["label"],
        epochs=2 if arguments.small else arguments.epochs,
        batch_size=50 if arguments.small else 100,
        verify=arguments.verify,
        budget=arguments.budget,
    )
    tried = model.evaluate(test["image"], test["label"], verbose=0, return_dict=True)
    print(f"task {history.task}: accuracy {tried['accuracy']:.4f} on {len(test['label'])} images")


def compiled(net: str) -> Any:
    model = build_model(Manifest.parse(NETS[net].read_bytes()).model, 1)
    model.compile(
        keras.optimizers.Adam(0.002),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--net", choices=NETS, default="lenet5")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--verify", default="audit:2", help="how; audit:0 believes the worker")
    parser.add_argument("--budget", default="1 ETH", help="the most that may be locked")
    parser.add_argument("--small", action="store_true", help=f"{SMALL_TRAIN} images, two epochs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
