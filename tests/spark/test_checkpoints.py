"""Checkpoints that cannot be written: before a task is paid, and after. Without Spark."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import keras
import pytest

import tests.quiet_web3  # noqa: F401
from tests.unit.rights import without_roots_rights
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.market import Market
from trainyard.spark import optimizer
from trainyard.spark.dataset import TFDataset
from trainyard.spark.optimizer import TFOptimizer
from trainyard.spark.triggers import MaxEpoch

HISTORY = SimpleNamespace(task=7, steps=4, receipt=SimpleNamespace(state="0xab"))


class Records(list[int]):
    """As much of a data set as training asks for."""

    batch_size, target, cid = 2, "y", "bafy"


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every `fit`, which is settled at once."""
    found: list[Any] = []

    def fit(*given: Any, **_: Any) -> Any:
        found.append(given)
        return HISTORY

    monkeypatch.setattr(optimizer, "fit", fit)
    return found


def training(folder: Path) -> TFOptimizer:
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    records, market = cast(TFDataset, Records(range(8))), cast(Market, object())
    return TFOptimizer(model, dataset=records, market=market).set_checkpoint(folder)


def test_nothing_is_paid_where_no_checkpoint_could_be_written(
    tmp_path: Path, fitted: list[Any]
) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "file").touch()

    for name in ("closed", "file"):
        with without_roots_rights(), pytest.raises(RefusedError, match=f"written to .*{name} "):
            training(tmp_path / name).optimize()

    assert fitted == []


def test_a_checkpoint_that_is_lost_names_the_task(
    tmp_path: Path, fitted: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = training(tmp_path / "new" / "folder")
    one.optimize()
    assert (tmp_path / "new" / "folder" / "model.4.keras").exists()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(one.model, "save", fail)
    with pytest.raises(OSError, match="the disk is full") as found:
        one.optimize(MaxEpoch(2))

    assert "trainyard.attach(7)" in found.value.__notes__[0]
    assert len(fitted) == 2
