"""The accuracy of a downloaded model on the table that it was trained on, as one line of JSON."""

import csv
import json
import sys
from pathlib import Path

import keras
import numpy as np


def main() -> None:
    model_path, table_path = map(Path, sys.argv[1:])
    with table_path.open() as table:
        rows = list(csv.DictReader(table))
    names = sorted({row["kind"] for row in rows})
    labels = np.array([names.index(row["kind"]) for row in rows])
    features = np.array(
        [[float(value) for name, value in row.items() if name != "kind"] for row in rows],
        dtype=np.float32,
    )
    model = keras.saving.load_model(model_path, compile=False)
    found = np.asarray(model.predict(features, verbose=0)).argmax(axis=1)
    print(json.dumps({"accuracy": float((found == labels).mean())}))


if __name__ == "__main__":
    main()
