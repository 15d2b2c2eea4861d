"""Text on the market: sentences become numbers here, and a network learns which are complaints.

    .venv/bin/trainyard devnet up --agents 3
    .venv/bin/python -m examples.text.train
    .venv/bin/python -m examples.text.train --layer lstm      # reads them word by word

A manifest knows numbers and no text, so words are counted and numbered on your machine; the
vocabulary stays with you. The sentences are made up by `corpus.py`.
"""

import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt

import trainyard
from examples.text.corpus import sentences

LENGTH = 16
# What fills a short sentence up, and every word that was not there to be learned.
PADDING, UNKNOWN = 0, 1
WORDS = 200

Numbers: TypeAlias = npt.NDArray[np.int32]


def main() -> None:
    arguments = parse_arguments()
    texts, labels = sentences(400 if arguments.small else 2_000, seed=1)
    vocabulary = vocabulary_of(texts)
    model = network(arguments.layer, 2 + len(vocabulary))

    history = trainyard.fit(
        model,
        numbers(texts, vocabulary),
        np.array(labels, np.int32),
        validation_split=0.1,
        epochs=4,
        batch_size=40,
        budget=arguments.budget,
    )

    tried, truths = sentences(200, seed=2)
    found = model.evaluate(
        numbers(tried, vocabulary), np.array(truths, np.int32), verbose=0, return_dict=True
    )
    print(f"task {history.task}: accuracy {found['accuracy']:.4f} on sentences it never saw")
    for text in ("The parcel never came and nobody answers.", "Thank you, the lamp is lovely!"):
        [[chance]] = model.predict(numbers([text], vocabulary), verbose=0)
        print(f"{1 / (1 + np.exp(-chance)):.2f} complaint: {text}")


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def vocabulary_of(texts: Iterable[str]) -> dict[str, int]:
    """The most frequent words, each with its number."""
    counts = Counter(word for text in texts for word in words(text))
    return {word: 2 + place for place, (word, _) in enumerate(counts.most_common(WORDS))}


def numbers(texts: Sequence[str], vocabulary: Mapping[str, int]) -> Numbers:
    """A row for each sentence, of one length for all."""
    found = np.full((len(texts), LENGTH), PADDING, np.int32)
    for row, text in zip(found, texts, strict=True):
        known = [vocabulary.get(word, UNKNOWN) for word in words(text)[:LENGTH]]
        row[: len(known)] = known
    return found


def network(layer: str, size: int) -> Any:
    reading = {
        "pooling": keras.layers.GlobalAveragePooling1D,
        "lstm": lambda: keras.layers.LSTM(16),
    }[layer]
    model = keras.Sequential(
        [
            keras.Input((LENGTH,), dtype="int32", name="words"),
            keras.layers.Embedding(size, 16),
            reading(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)],
    )
    return model


def parse_arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layer", choices=("pooling", "lstm"), default="pooling")
    parser.add_argument("--budget", default="0.5 ETH", help="the most that may be locked")
    parser.add_argument("--small", action="store_true", help="a fifth of the sentences")
    return parser.parse_args()


if __name__ == "__main__":
    main()
