"""`trainyard.fit` and what belongs to it, on one real market: a chain, agents, a page."""

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import keras
import numpy as np
import pytest

import tests.quiet_web3  # noqa: F401
import trainyard
from tests.market.command import COMMAND
from tests.market.sdk_world import (
    BATCH,
    EPOCHS,
    PATIENCE_S,
    POLL_S,
    STEPS,
    Heard,
    World,
    fingerprint,
    points,
    running_world,
    small_model,
)
from trainyard.content.cid import Cid, Codec
from trainyard.content.lifeline import dying_with_parent
from trainyard.datasets import add_arrays
from trainyard.engine.claims import open_claimed
from trainyard.engine.reading_keras import ModelImportError
from trainyard.engine.state import State
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState
from trainyard.protocol.offering import Wish
from trainyard.sdk.collecting import claim_of
from trainyard.sdk.errors import DetachedError, RefusedError, SlicesFailedError, TooDearError
from trainyard.sdk.posting import offer_for, post
from trainyard.sdk.receipts import Receipt
from trainyard.sdk.results import manifest_of


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world() as world:
        yield world


class Doubling(keras.layers.Layer):  # type: ignore[misc]
    def call(self, given: Any) -> Any:
        return given * 2


class Failing(keras.callbacks.Callback):  # type: ignore[misc]
    def on_train_begin(self, logs: Any = None) -> None:
        raise ZeroDivisionError("a callback of one's own")


def test_what_no_manifest_says_is_refused_before_money_moves(world: World) -> None:
    before = world.nonce()
    x, y = points(1)
    odd = keras.Sequential([keras.Input((4,)), Doubling(name="odd"), keras.layers.Dense(2)])
    odd.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    with pytest.raises(ModelImportError, match=r"layer 'odd' is a class of its own, Doubling"):
        trainyard.fit(odd, x, y, market=world.market)
    with pytest.raises(RefusedError, match=r"shape \[3\], and the model takes \[4\]"):
        trainyard.fit(small_model(), x[:, :3], y, market=world.market)
    plateau = keras.callbacks.ReduceLROnPlateau()
    with pytest.raises(RefusedError, match=r"ReduceLROnPlateau .* schedule"):
        trainyard.fit(small_model(), x, y, market=world.market, callbacks=[plateau])
    with pytest.raises(TooDearError, match=r"up to 0\.12 ETH, and the budget is 0\.05 ETH"):
        trainyard.fit(small_model(), x, y, market=world.market, budget="0.05 ETH")

    assert world.nonce() == before


# A requester of its own process, who says when training is heard of, and what the model is at last.
_FIT = """
import signal
# As on a terminal, also where the tests themselves run in the background and ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
import sys, keras, trainyard
from tests.market.sdk_world import BATCH, EPOCHS, fingerprint, points, small_model
class Heard(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        print("begun", flush=True)
model = small_model()
try:
    trainyard.fit(
        model, *points(1), validation_data=points(2, 64), epochs=EPOCHS, batch_size=BATCH,
        steps_per_segment=2, budget="0.5 ETH", verify=sys.argv[1], callbacks=[Heard()], verbose=0,
    )
finally:
    print(fingerprint(model.get_weights()), flush=True)
"""


@contextmanager
def fitting(
    world: World, verify: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator["subprocess.Popen[str]"]:
    """A process that trains, from when it has heard of training on."""
    process = subprocess.Popen(
        [sys.executable, "-c", _FIT, verify],
        cwd=Path(__file__).parents[2],
        env={**world.environment, **environment},
        preexec_fn=dying_with_parent(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        said = process.stdout.readline()
        if said != "begun\n":
            process.kill()
            pytest.fail(f"{said}{process.communicate()[1]}")
        yield process


@pytest.fixture(scope="module")
def left(world: World) -> int:
    """A task whose requester pressed Ctrl-C while it was trained."""
    with fitting(world, "audit:2") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)

    found = re.search(r"DetachedError: task (\d+) goes on .* trainyard\.attach\((\d+)\)", err)
    assert found, err
    assert found[1] == found[2]
    # Nobody waited for a result, so the model is as it was.
    assert out.strip() == fingerprint(small_model().get_weights())
    return int(found[1])


_ATTACH = """
import json, trainyard
from hashlib import sha256
history = trainyard.attach(TASK)
data = b"".join(one.tobytes() for one in history.model.get_weights())
steps = int(history.model.optimizer.iterations)
print(json.dumps([sha256(data).hexdigest(), steps, history.receipt.outcome]))
"""


@pytest.fixture(scope="module")
def attached(world: World, left: int) -> tuple[Any, Any, Heard]:
    """The same task, waited for with a twin of its model, in this process."""
    model, heard = small_model(), Heard()
    history = trainyard.attach(left, model, market=world.market, callbacks=[heard])
    return model, history, heard


def test_attach_brings_the_verified_weights_into_the_model(
    world: World, left: int, attached: tuple[Any, Any, Heard], tmp_path: Path
) -> None:
    model, history, heard = attached

    book = world.market.read().book
    task = book.tasks[left]
    assert task.state is TaskState.SETTLED
    run = open_claimed(world.market.content, task.terms.manifest, claim_of(left, task), tmp_path)
    state = State.load(run.published.state(run.last))
    kernel = state.tensors["weights/hidden/kernel"]
    np.testing.assert_array_equal(model.get_layer("hidden").kernel.numpy(), kernel)
    assert fingerprint(model.get_weights()) != fingerprint(small_model().get_weights())
    # The optimiser is where the run left it, so training could go on from here.
    assert int(model.optimizer.iterations) == STEPS
    slots = [one for name, one in state.tensors.items() if name.endswith("hidden_kernel_momentum")]
    np.testing.assert_array_equal(model.optimizer._momentums[0].numpy(), slots[0])
    assert history.receipt.state == f"0x{state.hash.hex()}"
    assert heard.calls == ["train begin", "epoch 0 end", "epoch 1 end", "train end"]
    # What the workers told on the page, in the form that Keras has it.
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= set(history.history)
    assert len(history.history["loss"]) == EPOCHS
    told = model.evaluate(*points(2, 64), verbose=0, return_dict=True)
    assert history.history["val_accuracy"][-1] == pytest.approx(told["accuracy"])


def test_another_process_attaches_with_nothing_but_the_number(
    world: World, left: int, attached: tuple[Any, Any, Heard]
) -> None:
    said = world.python(_ATTACH.replace("TASK", str(left)))

    found, steps, outcome = json.loads(said.splitlines()[-1])
    assert (found, steps, outcome) == (fingerprint(attached[0].get_weights()), STEPS, "settled")


_ATTACH_ELSEWHERE = """
import json, sys, trainyard
url, address, block, gateway, store, task = sys.argv[1:]
market = trainyard.connect(
    url, market=address, start_block=int(block), gateways=[gateway], store=store
)
with market:
    history = trainyard.attach(int(task), market=market, verbose=0)
print(json.dumps([history.receipt.state, int(history.model.optimizer.iterations)]))
"""


def test_a_task_outlives_its_requester_and_is_attached_to_from_elsewhere(
    world: World, left: int, tmp_path: Path
) -> None:
    """By an endpoint and a gateway, with a store of one's own, which is empty, and no key."""
    # Who is killed leaves behind what it had.
    with fitting(world, "audit:0", {"TMPDIR": str(tmp_path)}) as process:
        process.kill()
    number = max(world.market.read().book.tasks)
    net = world.net
    place = (net.url, net.market, str(net.start_block), net.gateway, str(tmp_path / "store"))

    done = world.run([sys.executable, "-c", _ATTACH_ELSEWHERE, *place, str(number)])

    assert done.returncode == 0, done.stderr
    state, steps = json.loads(done.stdout.splitlines()[-1])
    book = world.market.read().book
    task = book.tasks[number]
    assert (number > left, task.state) == (True, TaskState.SETTLED)
    run = open_claimed(world.market.content, task.terms.manifest, claim_of(number, task), tmp_path)
    known = State.load(run.published.state(run.last)).hash.hex()
    assert (state, steps) == (f"0x{known}", STEPS)


def test_an_error_after_posting_names_the_task(
    world: World, left: int, attached: tuple[Any, Any, Heard]
) -> None:
    with pytest.raises(ZeroDivisionError) as found:
        trainyard.attach(left, market=world.market, callbacks=[Failing()], verbose=0)

    assert found.value.__notes__ == [
        f"task {left} is posted: trainyard.attach({left}) comes back to it"
    ]


def test_the_receipt_is_signed_and_says_who_was_paid(
    world: World, left: int, attached: tuple[Any, Any, Heard], tmp_path: Path
) -> None:
    receipt: Receipt = attached[1].receipt

    assert receipt.signer == receipt.requester == world.market.account.address
    assert [one.answer == one.opened for one in receipt.audits] == [True, True]
    worker = receipt.workers[0]
    assert worker is not None
    terms = world.market.read().book.tasks[left].terms
    assert int(receipt.credited_wei[worker]) == terms.reward + terms.stake
    receipt.save(tmp_path / "receipt.json")
    assert Receipt.load(tmp_path / "receipt.json") == receipt


@pytest.fixture(scope="module")
def receipt(world: World, attached: tuple[Any, Any, Heard]) -> Path:
    path = world.folder / "receipt.json"
    attached[1].receipt.save(path)
    return path


def test_a_receipt_is_verified_with_an_endpoint_and_content_alone(
    world: World, receipt: Path
) -> None:
    net = world.net
    place = ("--on", net.url, "--market", net.market, "--start-block", net.start_block)
    code, found = world.command("verify", receipt, *place, "--gateway", net.gateway)

    assert (code, found["right"]) == (0, True), found
    assert [one["name"] for one in found["checks"]] == [
        *("signature", "chain", "transactions", "draw", "trace", "audits"),
    ]
    assert found["checks"][-1]["message"] == "2 of 2 audits agree"


def test_a_receipt_that_lies_is_found_out(world: World, receipt: Path, tmp_path: Path) -> None:
    document = json.loads(receipt.read_text())
    worker = document["workers"][0]
    document["credited_wei"][worker] = "1"
    document["state"] = "0x" + "ab" * 32
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document))

    code, found = world.command("verify", forged)

    wrong = {one["name"]: one["message"] for one in found["checks"] if not one["is_right"]}
    assert code == 4
    assert set(wrong) == {"signature", "chain", "trace"}
    assert wrong["chain"] == "the chain says otherwise about: credited_wei"


def test_the_result_is_fetched_as_a_model_that_keras_loads(
    world: World, left: int, attached: tuple[Any, Any, Heard], tmp_path: Path
) -> None:
    target = tmp_path / "model.keras"

    code, found = world.command("fetch", left, target)

    assert code == 0, found
    assert found["state"] == attached[1].receipt.state[2:]
    loaded = keras.saving.load_model(target).get_layer("hidden").kernel
    np.testing.assert_array_equal(loaded, attached[0].get_layer("hidden").kernel)
    place = ("--gateway", world.net.gateway, "--cache", tmp_path / "cache")
    code, audited = world.command("audit", found["result"], "--segment", 0, *place)
    assert (code, audited.get("agrees"), audited.get("root")) == (0, True, found["root"])


def test_a_quote_says_price_and_trust_and_pays_nothing(world: World) -> None:
    before, (x, y) = world.nonce(), points(1)

    found = trainyard.quote(
        small_model(),
        x,
        y,
        market=world.market,
        epochs=EPOCHS,
        batch_size=BATCH,
        deadline=timedelta(minutes=7),
        rehearse=False,
    )

    assert found.terms.train_for == 420
    assert (found.at_most_wei, found.likely_wei) == (12 * 10**16, 12 * 10**16)
    assert found.detection_of_half is not None
    assert 0.5 < found.detection_of_half < 1
    assert str(found).startswith("price     at most 0.12 ETH, likely 0.12 ETH\ntrust     2 audits ")
    assert world.nonce() == before


# Two slices of two batches each, of which the last is short.
ASKED = 118


@pytest.fixture(scope="module")
def predicted(world: World, attached: tuple[Any, Any, Heard]) -> tuple[Any, list[int], int]:
    """What two workers make of records with the trained model; their tasks; what was credited."""
    before = set(world.market.read().book.tasks)
    owner = world.market.account.address
    spent = world.market.balance(owner) + world.market.client.account(owner).credit

    found = trainyard.predict(
        attached[1].receipt,
        points(3, ASKED)[0],
        market=world.market,
        workers=2,
        batch_size=32,
        budget="0.5 ETH",
    )

    spent -= world.market.balance(owner) + world.market.client.account(owner).credit
    return found, sorted(set(world.market.read().book.tasks) - before), spent


def test_predictions_come_in_order_and_are_those_of_the_model(
    attached: tuple[Any, Any, Heard], predicted: tuple[Any, list[int], int]
) -> None:
    expected = attached[0].predict(points(3, ASKED)[0], verbose=0)

    assert predicted[0].dtype == np.float32
    np.testing.assert_allclose(predicted[0], expected, rtol=1e-5, atol=1e-6)
    # Another order would be seen: no two records have the same answer.
    assert len(np.unique(expected, axis=0)) == ASKED


def test_slices_are_tasks_that_are_audited_and_paid(
    world: World, predicted: tuple[Any, list[int], int]
) -> None:
    tasks = [world.market.read().book.tasks[number] for number in predicted[1]]

    assert [task.state for task in tasks] == [TaskState.SETTLED] * 2
    assert [task.terms.segments for task in tasks] == [2, 2]
    drawn = [(seat.answer, seat.opened) for task in tasks for seat in task.own_panel.seats]
    assert len(drawn) >= 2
    assert all(answer == opened for answer, opened in drawn)
    # Gas, and all that was locked: two rewards, and the fees of those who recomputed.
    escrow = sum(task.terms.escrow for task in tasks)
    assert escrow <= predicted[2] < escrow + 10**16


def test_who_detached_from_predictions_comes_back_to_them(
    world: World, predicted: tuple[Any, list[int], int], tmp_path: Path
) -> None:
    found = trainyard.predictions(*predicted[1], market=world.market)

    np.testing.assert_array_equal(found, predicted[0])
    receipt = tmp_path / "receipt.json"
    code, fetched = world.command(
        "fetch", predicted[1][1], tmp_path / "rows.npy", "--receipt", receipt
    )
    assert code == 0, fetched
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), predicted[0][64:])
    # What the receipt is about can be computed again, segment by segment.
    code, checked = world.command("verify", receipt, "--replay", 1)
    assert (code, checked["checks"][-1]["name"]) == (0, "replay"), checked
    with pytest.raises(RefusedError, match=rf"trainyard\.predictions\({predicted[1][0]}\)"):
        trainyard.attach(predicted[1][0], market=world.market)


def test_a_slice_without_a_result_is_named_and_refunded(
    world: World, predicted: tuple[Any, list[int], int]
) -> None:
    """Of a class of machines that nobody has, and taken back."""
    market, (good, _) = world.market, predicted[1]
    document = json.loads(manifest_of(market, good).canonical) | {"environment": "11" * 32}
    offer = offer_for(market, Manifest.of(document), Wish(policy=Policy.AUDIT, audits=0))
    lost = post(market, offer).number
    before = market.client.account(market.account.address).credit
    market.send("cancel", market.calls.cancel(lost))

    reason = f"^task {lost} was cancelled .* settled are {good}:"
    with pytest.raises(SlicesFailedError, match=reason) as found:
        trainyard.predictions(good, lost, market=market)

    assert (found.value.tasks, found.value.failed) == ((good, lost), (lost,))
    credit = market.client.account(market.account.address).credit
    assert credit - before == offer.terms.escrow


def test_figures_of_verified_predictions_are_those_of_keras(
    world: World, attached: tuple[Any, Any, Heard]
) -> None:
    """Of stored records, whose labels no worker is told of."""
    x, y = points(4, 40)
    stored = str(add_arrays(world.market.content, {"point": x, "label": y}).cid)

    found = trainyard.evaluate(
        attached[1], stored, "label", market=world.market, verify="audit:0", batch_size=20
    )

    expected = attached[0].evaluate(x, y, verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.long
def test_the_command_writes_predictions_to_a_file(
    world: World, left: int, attached: tuple[Any, Any, Heard], tmp_path: Path
) -> None:
    x = points(5, 50)[0]
    np.save(tmp_path / "x.npy", x)
    files = (tmp_path / "x.npy", tmp_path / "answers.npy")

    assert world.command("predict", left, *files)[0] == 2
    code, found = world.command("predict", left, *files, "--budget", "0.5 ETH", "--batch", 20)

    assert (code, found["shape"]) == (0, [50, 2]), found
    assert found["tasks"] == [max(world.market.read().book.tasks)]
    expected = attached[0].predict(x, verbose=0)
    np.testing.assert_allclose(np.load(files[1]), expected, rtol=1e-5, atol=1e-6)


def test_what_nobody_could_predict_is_refused_before_money_moves(
    world: World, left: int, attached: tuple[Any, Any, Heard]
) -> None:
    before, (x, y) = world.nonce(), points(3, 20)
    market, model = world.market, attached[0]

    with pytest.raises(RefusedError, match=r"shape \[3\], and the model takes \[4\]"):
        trainyard.predict(left, x[:, :3], market=market)
    with pytest.raises(TooDearError, match=r"the budget is 0\.1 ETH"):
        trainyard.predict(model, x, market=market, workers=2, batch_size=10, budget="0.1 ETH")
    with pytest.raises(RefusedError, match="workers: 0 is no number"):
        trainyard.predict(model, x, market=market, workers=0)
    with pytest.raises(RefusedError, match="x has 20 records, and y 19"):
        trainyard.evaluate(model, x, y[:19], market=market)
    with pytest.raises(RefusedError, match="y: SparseCategoricalCrossentropy needs integer"):
        trainyard.evaluate(model, x, y.astype(np.float32), market=market)
    elsewhere = attached[1].receipt.model_copy(update={"chain_id": 1})
    with pytest.raises(RefusedError, match="on chain 1, and this is"):
        trainyard.predict(elsewhere, x, market=market)

    assert world.nonce() == before


async def _attached_for(world: World, number: int, seconds: float) -> Any:
    """Who stops waiting detaches: no thread goes on behind its back, or the loop would not end."""
    return await asyncio.wait_for(
        trainyard.aio.attach(number, market=world.market, verbose=0), seconds
    )


def test_attach_is_awaited(world: World, left: int, attached: tuple[Any, Any, Heard]) -> None:
    history = asyncio.run(_attached_for(world, left, PATIENCE_S))

    assert fingerprint(history.model.get_weights()) == fingerprint(attached[0].get_weights())


def test_a_task_that_nobody_takes_is_posted_watched_and_taken_back(
    world: World, left: int, attached: tuple[Any, Any, Heard], tmp_path: Path
) -> None:
    """Of a class of machines that nobody has, so that nobody could audit it either."""
    task = world.market.read().book.tasks[left]
    known = world.market.content.fetcher.get(Cid(Codec.RAW, task.terms.manifest)).block
    document = json.loads(bytes(known)) | {"environment": "11" * 32}
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(document))

    assert world.command("post", manifest)[0] == 2
    code, refused = world.command("post", manifest, "--budget", "0.2 ETH")
    assert (code, refused["error"]) == (1, "0 auditors can be found, and the task needs 2")
    wishes = ("--budget", "0.2 ETH", "--verify", "audit:0", "--deadline", 420)
    code, posted = world.command("post", manifest, *wishes)
    assert code == 0, posted
    number = posted["task"]
    assert world.market.read().book.tasks[number].terms.train_for == 420
    _, listed = world.command("tasks", "--running")
    assert [one["task"] for one in listed["tasks"]] == [number]
    with pytest.raises(TimeoutError) as late:
        asyncio.run(_attached_for(world, number, POLL_S))
    cancelled = late.value.__cause__
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(cancelled.__cause__, DetachedError)
    assert cancelled.__cause__.task == number
    _, before = world.command("account", "balance")
    code, cancelled = world.command("cancel", number)

    assert (code, cancelled["state"]) == (0, "cancelled")
    escrow = int(posted["escrow_wei"])
    assert int(cancelled["credit_wei"]) - int(before["credit_wei"]) == escrow
    assert world.command("task", number)[1]["state"] == "cancelled"
    code, withdrawn = world.command("account", "withdraw")
    assert (code, withdrawn["amount_wei"]) == (0, cancelled["credit_wei"])
    assert world.command("account", "withdraw")[0] == 2
    assert world.command("watch", number)[0] == 1
    assert world.command("watch", left)[0] == 0
    assert world.command("cancel", left)[0] == 1


_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tutorial_does_what_it_says(world: World, tmp_path: Path) -> None:
    """All of its Python in one process, and then its commands; the devnet is there already."""
    text = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
    blocks = _BLOCK.findall(text)
    code = "\n".join(block for kind, block in blocks if kind == "python")
    commands = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]

    said = world.python(code, tmp_path)

    assert re.search(r"^time      about \d+ s of training, at 0\.\d+ s a step as here", said, re.M)
    told = ""
    for line in commands:
        name, *arguments = shlex.split(line)
        assert name == "trainyard"
        if arguments[0] != "devnet":
            done = world.run([*COMMAND, *arguments], tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
            told += done.stdout
    assert "come out as claimed, bit by bit" in told


# The examples and the how-to pages, and who pays with a key of their own, on this module's market.
from tests.market.example_tests import *  # noqa: E402, F403
from tests.market.keystore_tests import *  # noqa: E402, F403
