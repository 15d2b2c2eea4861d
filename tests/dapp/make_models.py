"""Writes a compiled Keras model as both of its files: `python make_models.py FOLDER`."""

import sys
from pathlib import Path


def main(folder: Path) -> None:
    import keras

    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8, activation="relu", name="hidden"),
            keras.layers.Dense(3, name="out"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    model.save(folder / "model.keras")
    (folder / "model.json").write_text(model.to_json())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
