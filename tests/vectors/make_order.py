"""Makes `order.json`: `python -m tests.vectors.make_order > tests/vectors/order.json`.

Records of some steps, also for whoever writes the order in yet another language.
"""

import json
from typing import Any

from trainyard.engine.order import LARGEST_SEED, Order

# Orders that are kept whole and orders that are not, with and without records held out.
CASES = [
    (Order(0, 1), 0, 3),
    (Order(42, 10), 1, 4),
    (Order(42, 10, held_out=3), 1, 4),
    (Order(LARGEST_SEED, 60_000), 468, 128),
    (Order(7, 65_537), 10**9, 8),
    (Order(7, 1_000_003, held_out=100_000), 112_500, 8),
    (Order(7, 2**60), 2**57, 8),
]


def make_vectors() -> list[dict[str, Any]]:
    return [
        {
            "seed": order.seed,
            "records": order.records,
            "held_out": order.held_out,
            "step": step,
            "batch": batch,
            "numbers": order.records_at(step, batch).tolist(),
            "validation": order.held_out_at(0, min(8, order.held_out)).tolist(),
        }
        for order, step, batch in CASES
    ]


if __name__ == "__main__":
    print(json.dumps(make_vectors(), indent=1))
