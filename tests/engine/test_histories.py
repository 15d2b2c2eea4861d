"""What Keras callbacks hear of a run on the market, and when."""

import math
from typing import Any

import keras
import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.protocol.manifest import Plan
from trainyard.sdk.epochs import Epochs, Point
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.histories import Calls, History, listed

WATCHED = ("loss", "val_loss")


class Heard(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.calls.append(("begin", self.params["epochs"], self.params["steps"]))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append(("batch", batch, logs))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.calls.append(("epoch", epoch, logs))

    def on_train_end(self, logs: Any = None) -> None:
        self.calls.append(("end", logs))


class Stopping(keras.callbacks.Callback):  # type: ignore[misc]
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.stop_training = True


class Said:
    """Who watches."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    warn = say

    def steps(self, done: int, logs: dict[str, float]) -> None: ...


def calls(*callbacks: Any) -> tuple[Calls, History, Said]:
    """Two epochs of four steps, in segments of two."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    history, said = History(1), Said()
    epochs = Epochs(Plan(40, 0, 10, 8, 2), WATCHED, 2)
    one = Calls(model, callbacks, history, epochs)
    one.show = said
    return one, history, said


def test_callbacks_hear_of_batches_and_epochs_while_training_goes_on() -> None:
    heard = Heard()
    one, history, _ = calls(heard)

    one.take([Point(0, 2, {"loss": 3.0})])
    assert heard.calls == [("begin", 2, 4), ("batch", 1, {"loss": 3.0})]
    one.take([Point(0, 4, {"loss": 1.0}), Point(0, 4, {"val_loss": 2.0})])
    one.take([Point(0, 6, {"loss": 0.5})])
    assert heard.calls[2:] == [
        ("batch", 3, {"loss": 1.0}),
        ("epoch", 0, {"loss": 2.0, "val_loss": 2.0}),
        ("batch", 1, {"loss": 0.5}),
    ]
    one.finish(8, {})

    assert heard.calls[-2:] == [("epoch", 1, {"loss": 0.5}), ("end", {"loss": 0.5})]
    assert history.history == {"loss": [2.0, 0.5], "val_loss": [2.0]}


def test_figures_computed_here_stay_in_step_with_their_epochs() -> None:
    one, history, _ = calls()

    one.finish(8, {1: {"val_loss": 0.25}})

    assert history.epoch == [0, 1]
    [first, second] = history.history["val_loss"]
    assert (math.isnan(first), second) == (True, 0.25)


def test_a_callback_that_wants_to_stop_is_told_that_it_cannot() -> None:
    one, _, said = calls(Stopping())

    one.take([Point(0, 2, {"loss": 3.0})])

    assert "EarlyStopping, which they know of" in said.lines[-1]


def test_one_callback_alone_is_a_list_of_it_and_others_are_refused() -> None:
    heard = Heard()

    assert (listed(None), listed(heard), listed(iter([heard]))) == ([], [heard], [heard])
    for wrong in (5, [heard, "EarlyStopping"], [keras.callbacks.EarlyStopping]):
        with pytest.raises(RefusedError, match=r"callbacks: .* is none of Keras'"):
            listed(wrong)


def test_a_receipt_is_there_at_the_end_and_not_before() -> None:
    with pytest.raises(AttributeError, match="when the task is settled"):
        _ = History(1).receipt
