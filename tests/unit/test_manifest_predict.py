"""Manifests that predict: their plan, and what they have none of."""

from typing import Any

import pytest

from tests.engine.manifests import Document, classifier
from trainyard.protocol.manifest import Manifest, ManifestError, PredictPlan


def predicting(**training: Any) -> Document:
    document = classifier()
    document["training"] = {
        "mode": "predict",
        "batch": 10,
        "until": {"epochs": 1},
        "steps_per_segment": 3,
        "seed": 1,
        **training,
    }
    train = document["data"]["train"]
    document["data"] = {"train": {**train, "records": 95}}
    return document


def plan_of(document: Document) -> PredictPlan:
    plan = Manifest.of(document).plan
    assert isinstance(plan, PredictPlan)
    return plan


def test_a_plan_goes_over_the_records_once_and_ends_with_a_short_batch() -> None:
    plan = plan_of(predicting())

    assert (plan.steps, plan.segments) == (10, 4)
    assert [plan.records(step) for step in (0, 1, 9)] == [(0, 10), (10, 20), (90, 95)]
    assert [plan.rows(segment) for segment in range(4)] == [30, 30, 30, 5]


def test_a_part_has_its_own_steps_over_records_of_the_whole() -> None:
    plan = plan_of(predicting(part={"first": 40, "records": 25}))

    assert (plan.steps, plan.segments) == (3, 1)
    assert [plan.records(step) for step in range(3)] == [(40, 50), (50, 60), (60, 65)]


def test_every_segment_is_computed_from_the_weights_alone() -> None:
    plan = plan_of(predicting())

    assert {plan.inputs_of(segment) for segment in range(plan.segments)} == {(0,)}


def test_fewer_records_than_a_batch_are_one_short_batch() -> None:
    plan = plan_of(predicting(batch=200))

    assert (plan.steps, plan.rows(0)) == (1, 95)


def test_records_to_predict_for_need_no_target() -> None:
    document = predicting()
    train = document["data"]["train"]
    del train["target"]
    train["features"] = {"image": train["features"]["image"]}

    assert Manifest.of(document).data.train.used == ("image",)


def test_a_model_that_trains_nothing_can_still_predict() -> None:
    document = predicting()
    for layer in document["model"]["layers"]:
        layer["trainable"] = False

    assert Manifest.of(document).model.trainable_parameters == 0
    with pytest.raises(ManifestError, match="no layer has weights to train"):
        Manifest.of({**document, "training": classifier()["training"]})


_LOSS = {"type": "SparseCategoricalCrossentropy", "from_logits": True}


@pytest.mark.parametrize(
    ("changes", "path", "reason"),
    [
        ({"loss": _LOSS}, "training.loss", "trains nothing"),
        ({"optimizer": {"type": "SGD"}}, "training.optimizer", "trains nothing"),
        ({"validation": {"split": 0.1}}, "training.validation", "trains nothing"),
        ({"until": {"epochs": 2}}, "training.until.epochs", "goes over the records once"),
        ({"until": {"steps": 2}}, "training.until.epochs", "goes over the records once"),
        ({"workers": 2}, "training.workers", "post a task for each"),
        ({"part": {"first": 90, "records": 6}}, "training.part", "records 90 to 95, and there"),
        ({"mode": "single"}, "training.optimizer", "is missing"),
    ],
)
def test_what_a_prediction_has_not_is_refused(changes: Document, path: str, reason: str) -> None:
    with pytest.raises(ManifestError) as found:
        Manifest.of(predicting(**changes))

    assert (found.value.path, reason in str(found.value)) == (path, True), found.value


def test_only_a_prediction_does_without_loss_and_target_and_takes_a_part() -> None:
    document = classifier()
    part = {"first": 0, "records": 1}

    with pytest.raises(ManifestError, match="only mode 'predict' has a part"):
        Manifest.of({**document, "training": {**document["training"], "part": part}})
    del document["training"]["loss"]
    with pytest.raises(ManifestError, match=r"training\.loss: is missing"):
        Manifest.of(document)
    document = classifier()
    del document["data"]["train"]["target"]
    with pytest.raises(ManifestError, match=r"data\.train\.target: is missing"):
        Manifest.of(document)


def test_predictions_of_a_segment_that_no_memory_holds_are_refused() -> None:
    document = predicting(batch=1_000_000, steps_per_segment=1_000)
    document["data"]["train"]["records"] = 1 << 30

    with pytest.raises(ManifestError, match="steps_per_segment: the predictions of a segment take"):
        Manifest.of(document)
