"""`trainyard.fit` in every mode and by every way to verify, and of scripts, on one real market."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tests.quiet_web3  # noqa: F401
import trainyard
from tests.market.sdk_world import (
    BATCH,
    EPOCHS,
    RECORDS,
    Heard,
    World,
    fingerprint,
    points,
    running_world,
    small_model,
)
from trainyard.devnet.options import Options
from trainyard.engine.claims import open_claimed
from trainyard.engine.state import State
from trainyard.face import sandbox
from trainyard.protocol.offering import OfferError
from trainyard.sdk.collecting import claim_of
from trainyard.sdk.market import Market, PlayKey
from trainyard.sdk.results import manifest_of


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """On the chain that a devnet has by itself, where all other modules have anvil."""
    with running_world(Options().chain) as world:
        yield world


class Batches:
    """A generator of batches with a length, as Keras has them."""

    def __init__(self, x: Any, y: Any) -> None:
        self._x, self._y = x, y

    def __len__(self) -> int:
        return -(-len(self._x) // BATCH)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        part = slice(number * BATCH, (number + 1) * BATCH)
        return self._x[part], self._y[part]


def dataset(x: Any, y: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


@dataclass(frozen=True, slots=True)
class Way:
    """A mode and a way to verify, with what `trainyard verify` then looks at."""

    mode: str
    workers: int
    verify: str
    slots: int
    checks: tuple[str, ...]
    # In which form the records are given; each is a list of what `fit` takes before its wishes.
    given: Callable[[Any, Any], list[Any]] = lambda x, y: [x, y]


_ALWAYS = ("signature", "chain", "transactions")
WAYS = {
    "sync": Way(
        *("sync", 2, "audit:1", 2, (*_ALWAYS, "draw", "trace", "audits")),
        given=lambda x, y: [dataset(x, y)],
    ),
    "rounds": Way(
        *("rounds", 2, "audit:1", 2, (*_ALWAYS, "draw", "trace", "audits")),
        given=lambda x, y: [Batches(x, y)],
    ),
    "async": Way("async", 2, "score:0.3", 2, (*_ALWAYS, "trace", "scores", "replay")),
    "replicate": Way("single", 1, "replicate:3", 3, (*_ALWAYS, "trace", "copies", "replay")),
}


@pytest.mark.parametrize(
    "name",
    [
        *("sync", "rounds"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("async", "replicate")),
    ],
)
def test_fit_trains_in_every_mode_and_by_every_way_to_verify(
    world: World, tmp_path: Path, name: str
) -> None:
    way, model, heard = WAYS[name], small_model(), Heard()
    unseen, market = points(2, 64), world.market
    credit = market.client.account(market.account.address).credit

    history = trainyard.fit(
        model,
        *way.given(*points(1)),
        market=market,
        validation_data=unseen,
        epochs=EPOCHS,
        batch_size=BATCH,
        steps_per_segment=2,
        mode=way.mode,
        workers=way.workers,
        verify=way.verify,
        budget="1 ETH",
        callbacks=[heard],
    )

    assert manifest_of(market, history.task).data.train.records == RECORDS
    # The weights are those of the verified run.
    task = market.read().book.tasks[history.task]
    claim = claim_of(history.task, task)
    run = open_claimed(market.content, task.terms.manifest, claim, tmp_path)
    state = State.load(run.published.state(run.last))
    np.testing.assert_array_equal(
        model.get_layer("hidden").kernel, state.tensors["weights/hidden/kernel"]
    )
    assert fingerprint(model.get_weights()) != fingerprint(small_model().get_weights())
    assert history.receipt.state == f"0x{state.hash.hex()}"
    # Epochs are there with their figures, and were told while they went on.
    assert history.epoch == list(range(EPOCHS))
    assert {len(one) for one in history.history.values()} == {EPOCHS}
    tried = model.evaluate(*unseen, verbose=0, return_dict=True)
    assert history.history["val_accuracy"][-1] == pytest.approx(tried["accuracy"])
    assert heard.calls == ["train begin", "epoch 0 end", "epoch 1 end", "train end"]
    # Everybody has what was promised, and nothing is left of the escrow.
    terms, paid = task.terms, history.receipt.credited_wei
    workers = set(history.receipt.workers)
    assert len(workers) == terms.slots == way.slots
    assert {int(paid[str(one)]) for one in workers} == {terms.reward + terms.stake}
    members = {one.member for one in history.receipt.audits}
    assert {int(paid[one]) for one in members} <= {terms.audit_fee}
    unspent = terms.audit_fee * (terms.audits - len(members))
    gained = market.client.account(market.account.address).credit - credit
    # What was credited before is spent first.
    spent = min(credit, terms.escrow)
    assert (gained + spent, int(paid.get(market.account.address, 0))) == (unspent, unspent)
    # Who has only the receipt finds the same.
    history.receipt.save(tmp_path / "receipt.json")
    replay = ("--replay", 2) if "replay" in way.checks else ()
    code, found = world.command("verify", tmp_path / "receipt.json", *replay)
    assert (code, tuple(one["name"] for one in found["checks"])) == (0, way.checks), found
    # Without the page what workers told is computed from the states that the trace names.
    with replaced(market, page=None) as unseeing:
        alone = trainyard.attach(history.task, market=unseeing, verbose=0).history
    told = history.history
    assert alone.keys() == {"val_loss", "val_accuracy"}
    for figure in alone:
        assert alone[figure] == pytest.approx(told[figure], rel=1e-4)


def replaced(market: Market, **place: Any) -> Market:
    """The same market by another place, for its requester."""
    return Market(replace(market.place, **place), PlayKey(market.account), sandbox)


def test_people_that_are_too_few_are_told_before_money_moves(world: World) -> None:
    before, (x, y) = world.nonce(), points(1)

    reason = r"2 workers and 2 auditors are needed.*'audit:1'.*devnet down' and '.*up --agents 4'"
    with pytest.raises(OfferError, match=reason):
        trainyard.fit(small_model(), x, y, market=world.market, workers=2)

    assert world.nonce() == before


_SCRIPT = """
import keras
import numpy as np

x = np.random.default_rng(1).normal(size=(64, 4)).astype(np.float32)
data = {"x": x, "y": x.sum(axis=1) > 0, "validation_data": (x[:16], x[:16].sum(axis=1) > 0)}
model = keras.Sequential([keras.Input((4,), name="point"), keras.layers.Dense(2, name="out")])
model.compile(
    "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
print("garbage")
"""


@pytest.mark.long
def test_a_script_and_a_model_are_quoted_and_a_hostile_script_is_not(
    world: World, tmp_path: Path
) -> None:
    script, model, hostile = (tmp_path / one for one in ("train.py", "model.keras", "hostile.py"))
    script.write_text(_SCRIPT)
    small_model().save(model)
    x, y = points(1)
    np.savez(tmp_path / "train.npz", point=x, label=y)
    hostile.write_text(f"print(open({str(world.folder / 'state')!r}).read())")
    before, plain = world.nonce(), ("--no-rehearse", "--epochs", 5)

    code, of_script = world.command("quote", script, *plain, "--batch", 16)
    assert code == 0, of_script
    code, of_model = world.command("quote", model, "--data", tmp_path / "train.npz", *plain)
    assert code == 0, of_model
    code, refused = world.command("quote", hostile, *plain)

    assert (of_script["terms"]["segments"], of_model["terms"]["segments"]) == (20, 40)
    assert code == 1
    assert re.search(r"hostile\.py: it does not run: line 1: FileNotFoundError", refused["error"])
    assert world.nonce() == before


@pytest.mark.long
def test_a_script_is_posted_trained_and_fetched(world: World, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)

    code, posted = world.command("post", script, "--epochs", 2, "--budget", "1 ETH")
    assert code == 0, posted
    assert world.command("watch", posted["task"])[0] == 0
    code, fetched = world.command("fetch", posted["task"], tmp_path / "model.keras")

    assert code == 0, fetched
    assert keras.saving.load_model(tmp_path / "model.keras").get_layer("out").kernel.shape == (4, 2)
