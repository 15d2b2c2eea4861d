"""Makes `houses.csv` up: what some houses sell for, by a rule with some noise in it.

    .venv/bin/python -m examples.own_csv.make_csv

It is in git, so that the example runs without; a test sees to it that this is how it was made.
"""

import csv
import io
from pathlib import Path

import numpy as np

TARGET = Path(__file__).with_name("houses.csv")
COLUMNS = ("area_m2", "rooms", "age_years", "km_to_centre", "price")
ROWS = 600


def text() -> str:
    random = np.random.default_rng(11)
    area = random.uniform(40, 220, ROWS).round()
    rooms = np.clip((area / 30 + random.normal(0, 1, ROWS)).round(), 1, None)
    age = random.uniform(0, 100, ROWS).round()
    distance = random.exponential(8, ROWS).round(1)
    price = 900 * area + 9_000 * rooms - 700 * age + 260_000 * np.exp(-distance / 6)
    price = (price + random.normal(0, 9_000, ROWS)).round(-2)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in zip(area, rooms, age, distance, price, strict=True):
        writer.writerow([f"{value:g}" if value < 1_000 else f"{value:.0f}" for value in row])
    return out.getvalue()


if __name__ == "__main__":
    TARGET.write_text(text())
    print(TARGET)
