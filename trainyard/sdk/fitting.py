"""`fit` and `attach`: a model trained on the market, and its verified weights back in place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from trainyard.engine.counting import Counters
from trainyard.engine.state import State
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.offering import Wish
from trainyard.sdk.collecting import collect
from trainyard.sdk.composing import RoundsWish, Shape, compose
from trainyard.sdk.concluding import conclusion
from trainyard.sdk.epochs import Epochs
from trainyard.sdk.errors import DetachedError, RefusedError, TaskFailedError
from trainyard.sdk.following import Following, Known, remember, require_settled, require_wanted
from trainyard.sdk.histories import Calls, History, listed
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer, check_budget, offer_for, post
from trainyard.sdk.results import known_task, signed_receipt
from trainyard.sdk.showing import Verbose, shown
from trainyard.sdk.trying import tried_here
from trainyard.sdk.wishing import seconds_of, verification_of, wei_of


class Wishes(TypedDict, total=False):
    """What can be said of a task, by `fit` and by `quote`; all of it may be left out."""

    # (x, y), a data set, or whatever else x may be.
    validation_data: Any
    validation_split: float
    epochs: int
    # Instead of epochs: after so many steps training ends.
    steps: int
    # What all workers together take in one step.
    batch_size: int
    workers: int
    # "single", "sync", "rounds" or "async"; by the number of workers if left out.
    mode: str
    # In mode rounds: {"local_steps": 50, "compression": "int8"} and more.
    rounds: RoundsWish
    # "audit:2", "replicate:3" or "score:0.95"; the last has to be said in mode async.
    verify: str
    # The most that may be locked: "0.5 ETH", or wei.
    budget: int | str
    # For each worker: "0.1 ETH", or wei. What others pay, if left out.
    reward: int | str
    # How long training may take, in seconds.
    deadline: float | timedelta
    class_weight: dict[int, float]
    sample_weight: Any
    callbacks: Sequence[Any]
    seed: int
    threads: int
    steps_per_segment: int
    # Whether to begin with a fresh optimiser though the model's has taken steps.
    fresh_optimizer: bool


_SHAPE = (
    *("epochs", "steps", "batch_size", "workers", "mode", "validation_split", "class_weight"),
    *("seed", "threads", "steps_per_segment", "rounds"),
)


def prepare(market: Market, model: Any, x: Any, y: Any, wishes: Wishes) -> Offer:
    """The manifest with all that belongs to it in content, and terms; nothing is paid yet."""
    unknown = set(wishes) - set(Wishes.__annotations__)
    if unknown:
        raise RefusedError(
            f"{', '.join(sorted(unknown))}: no such setting; there are "
            f"{', '.join(sorted(Wishes.__annotations__))}"
        )
    if "epochs" in wishes and "steps" in wishes:
        raise RefusedError("give either epochs or steps")
    given: dict[str, Any] = {name: wishes[name] for name in _SHAPE if name in wishes}  # type: ignore[literal-required]
    shape = Shape(**given)
    wish = _wish(wishes, shape.chosen_mode)
    manifest = compose(
        market.content,
        model,
        x,
        y,
        shape,
        validation_data=wishes.get("validation_data"),
        sample_weight=wishes.get("sample_weight"),
        callbacks=listed(wishes.get("callbacks")),
        fresh_optimizer=wishes.get("fresh_optimizer", False),
    )
    offer = offer_for(market, manifest, wish)
    budget = wishes.get("budget")
    check_budget(offer.terms, None if budget is None else wei_of(budget))
    return offer


def fit(
    market: Market, model: Any, x: Any, y: Any, wishes: Wishes, *, verbose: Verbose = "auto"
) -> History:
    callbacks = listed(wishes.get("callbacks"))
    offer = prepare(market, model, x, y, {**wishes, "callbacks": callbacks})
    stage = _stage(offer.manifest, model, callbacks)
    require_wanted()
    try:
        posted = post(market, offer)
    except KeyboardInterrupt as error:
        error.add_note("the task may be posted all the same: 'trainyard tasks' shows whether it is")
        raise
    return _follow(market, posted.number, posted.known, stage, verbose)


def attach(
    market: Market,
    number: int,
    model: Any = None,
    *,
    callbacks: Sequence[Any] = (),
    verbose: Verbose = "auto",
) -> History:
    """Come back to a task: all that it takes is on chain and in content."""
    known, manifest = known_task(market, number)
    if manifest.training.predicts:
        raise RefusedError(
            f"task {number} predicts, and trains no model: trainyard.predictions({number}) waits "
            "for what it predicts"
        )
    if model is not None:
        _require_same(manifest, model)
    with _naming(lambda: number):
        stage = _stage(manifest, model, listed(callbacks))
    return _follow(market, number, known, stage, verbose)


def _wish(wishes: Wishes, mode: str) -> Wish:
    found = verification_of(wishes.get("verify"), mode)
    reward, deadline = wishes.get("reward"), wishes.get("deadline")
    return Wish(
        policy=found.policy,
        slots=found.slots,
        audits=found.audits,
        target=found.target,
        reward=None if reward is None else wei_of(reward, "reward"),
        train_for=None if deadline is None else seconds_of(deadline),
    )


def _require_same(manifest: Manifest, model: Any) -> None:
    from trainyard.engine.importing import model_of
    from trainyard.engine.transplanting import is_same_network, unlike_optimizers

    if not is_same_network(model_of(model), manifest.model):
        raise RefusedError(
            "the task trains another model than this one: leave the model out, and the history "
            "brings the task's own as history.model"
        )
    unlike = unlike_optimizers(model, manifest)
    if unlike is not None:
        trained, here = unlike
        raise RefusedError(
            f"the task trains with {trained}, and this model is compiled with {here}: compile it "
            "as it was for the task, or leave it out, and the history brings the task's own as "
            "history.model"
        )


@contextmanager
def _naming(task: Callable[[], int]) -> Iterator[None]:
    """Whatever goes wrong inside says which task has money locked: only we know."""
    try:
        yield
    except KeyboardInterrupt:
        raise DetachedError(task()) from None
    except (DetachedError, TaskFailedError):
        # They name the task themselves.
        raise
    except Exception as error:
        error.add_note(f"task {task()} is posted: trainyard.attach({task()}) comes back to it")
        raise


@dataclass(frozen=True, slots=True)
class _Stage:
    """All that a task needs here beside its number."""

    manifest: Manifest
    # That of the caller, who may have none.
    model: Any
    history: History
    epochs: Epochs
    calls: Calls


def _stage(manifest: Manifest, model: Any, callbacks: Sequence[Any]) -> _Stage:
    """Made before a task is posted: callbacks are told of their model, which may go wrong."""
    from trainyard.engine.program import build_model

    training = manifest.training
    target = model if model is not None else build_model(manifest.model, training.seed)
    epochs = Epochs(manifest.plan, training.watched, training.until.epochs)
    history = History(0)
    return _Stage(manifest, model, history, epochs, Calls(target, callbacks, history, epochs))


def _follow(market: Market, number: int, known: Known, stage: _Stage, verbose: Verbose) -> History:
    manifest, history, calls = stage.manifest, stage.history, stage.calls
    history.task = number
    with ExitStack() as parts:
        parts.enter_context(_naming(lambda: history.task))
        remember(number)
        show = parts.enter_context(shown(f"task {number}", manifest.plan.steps, verbose))
        following = Following(market, number, known, say=show.warn)
        parts.enter_context(closing(following))
        calls.show = show
        if market.place.page is None:
            show.say("this market has no page to which workers tell figures: logs come at the end")
        folder = parts.enter_context(TemporaryDirectory(prefix="trainyard-result-"))
        for sight in following.sights():
            if following.number != history.task:
                history.task = following.number
                remember(history.task)
            for line in sight.sentences:
                show.say(line)
            calls.take(sight.points)
        number = history.task
        require_settled(number, following.book.tasks[number])
        run, state = collect(market, following.book, number, Path(folder))
        _take_over(history, manifest, stage.model, state)
        steps = Counters.of(state).step
        history.close_with(signed_receipt(market, number, state.hash), steps)
        show.steps(steps, {})
        untried = stage.epochs.untried(steps)
        calls.finish(steps, tried_here(market, manifest, run, state, untried, show))
        show.say(conclusion(number, following.book.tasks[number], run.result_cid))
    return history


def _take_over(history: History, manifest: Manifest, model: Any, state: State) -> None:
    """The verified state into the caller's model, in place; or into one made of the manifest."""
    from trainyard.engine.transplanting import compiled_model, restore

    if model is None:
        history.set_model(compiled_model(manifest, state))
        return
    restore(model, manifest, state)
    history.set_model(model)
    model.history = history
