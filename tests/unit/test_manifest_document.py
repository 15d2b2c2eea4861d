"""Manifests: one text, one digest, and a plan that is known beforehand."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.manifests import classifier, manifest
from trainyard.protocol.manifest import Manifest, ManifestError
from trainyard.protocol.manifest.document import MOST_VALUES


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same document with its members in another order."""
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@given(st.randoms(use_true_random=False), st.sampled_from([None, 1, "\t"]))
def test_spelling_does_not_change_the_digest(chance: random.Random, indent: Any) -> None:
    text = json.dumps(shuffled(classifier(), chance), indent=indent)

    assert Manifest.parse(text).digest == manifest().digest


@given(st.floats(1e-30, 1e30), st.integers(0, 2**53 - 1))
def test_the_canonical_text_says_it_all(rate: float, seed: int) -> None:
    one = manifest(optimizer={"type": "SGD", "learning_rate": rate}, seed=seed)

    back = Manifest.parse(one.canonical)

    assert back == one
    assert back.canonical == one.canonical
    assert back.training.optimizer is not None
    assert (back.training.optimizer.learning_rate, back.training.seed) == (rate, seed)


def test_a_default_that_is_written_out_changes_nothing() -> None:
    assert manifest(mode="single", workers=1).digest == manifest().digest
    assert manifest(seed=43).digest != manifest().digest


@pytest.mark.parametrize(
    ("training", "steps", "segments", "held_out"),
    [
        ({"until": {"epochs": 2}}, 63, 7, 0),  # 2000 records in batches of 32
        ({"until": {"steps": 60}}, 60, 6, 0),
        ({"until": {"epochs": 1}, "validation": {"split": 0.29}}, 23, 3, 290),
        ({"until": {"epochs": 1}, "batch": 1000}, 1, 1, 0),
    ],
)
def test_the_plan_is_known_beforehand(
    training: dict[str, Any], steps: int, segments: int, held_out: int
) -> None:
    plan = manifest(**training).plan

    assert (plan.steps, plan.segments, plan.held_out) == (steps, segments, held_out)
    bounds = [plan.bounds(segment) for segment in range(plan.segments)]
    assert [step for first, last in bounds for step in range(first, last)] == list(range(steps))
    with pytest.raises(IndexError):
        plan.bounds(plan.segments)


@pytest.mark.parametrize("records", ["test", "validation"])
def test_runs_that_are_scored_need_records_for_that(records: str) -> None:
    document = classifier(mode="async", workers=3)
    if records == "test":
        document["data"]["test"] = document["data"]["train"]
    else:
        document["training"]["validation"] = {"split": 0.1}

    # Each step is one worker's, so that three may have a batch of 32.
    assert Manifest.of(document).training.batch == 32


def test_padding_may_not_reach_what_does_not_heed_it() -> None:
    document = classifier()
    document["model"] = {
        "inputs": [{"name": "words", "shape": [9], "dtype": "int64"}],
        "layers": [
            {"name": "e", "type": "Embedding", "input_dim": 5, "output_dim": 3, "mask_zero": True},
            {"name": "mean", "type": "GlobalAveragePooling1D"},
            {"name": "logits", "type": "Dense", "units": 4},
        ],
        "outputs": ["logits"],
    }

    with pytest.raises(ValueError, match=r"layers\[1\]: GlobalAveragePooling1D does not heed"):
        Manifest.of(document)


def large(**training: Any) -> Manifest:
    """Images of which a model holds millions of values each."""
    document = classifier(batch=1000, **training)
    shape = [600, 600, 1]
    document["model"]["inputs"][0]["shape"] = shape
    document["data"]["train"]["features"]["image"]["shape"] = shape
    return Manifest.of(document)


def test_batch_that_no_worker_can_hold_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"training\.batch: 1000 examples of \d+ values each"):
        large()

    shared = large(mode="sync", workers=8)
    assert shared.training.batch // 8 * shared.model.activations <= MOST_VALUES


def test_large_records_are_evaluated_in_smaller_batches() -> None:
    shared = large(mode="sync", workers=8)

    assert manifest().evaluation_batch == 1000
    assert 1 < shared.evaluation_batch < 100
    assert shared.evaluation_batch * shared.model.activations <= 100_000_000
