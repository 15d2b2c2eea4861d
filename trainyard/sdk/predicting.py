"""`predict` and `evaluate`: what a model makes of records, computed and verified on the market.

Each worker has a task of its own, with a slice of the records. All slices are posted at once; what
comes back is put together in the order of the records.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

import numpy as np

from trainyard.content.content import Content
from trainyard.engine.errors import StateError
from trainyard.engine.predictions import read_predictions
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.manifest import Manifest, Model
from trainyard.protocol.market import TaskState
from trainyard.protocol.offering import Wish
from trainyard.sdk.collecting import collect_from
from trainyard.sdk.errors import DetachedError, RefusedError, SlicesFailedError, TaskFailedError
from trainyard.sdk.following import Known, remember, require_settled, require_wanted
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer, check_total, offer_in, post, require_money
from trainyard.sdk.records import Array, Records, is_arrays, unlabelled
from trainyard.sdk.results import known_task
from trainyard.sdk.showing import Show, Verbose, shown
from trainyard.sdk.slicing import Slice, segment_length, slices_of
from trainyard.sdk.spooling import spooled
from trainyard.sdk.subjects import Subject, add_weights, subject_of
from trainyard.sdk.targets import check_targets, targets_of
from trainyard.sdk.waiting import wait_for
from trainyard.sdk.wishing import count_of, seconds_of, verification_of, wei_of

_BATCH = 32
# Nothing is drawn by it: weights are given, and a prediction has no chance in it.
_SEED = 1


class PredictWishes(TypedDict, total=False):
    """What can be said of a prediction; all of it may be left out."""

    # Slices of the records, each of which is a task for one worker.
    workers: int
    batch_size: int
    # "audit:2" or "replicate:3".
    verify: str
    # The most that may be locked by all slices together: "0.5 ETH", or wei.
    budget: int | str
    # For each worker: "0.1 ETH", or wei. What others pay, if left out.
    reward: int | str
    # How long predicting may take, in seconds.
    deadline: float | timedelta
    # How often a slice is posted, if it fails: the money of one that failed is credited first.
    attempts: int
    threads: int
    steps_per_segment: int


@dataclass(frozen=True, slots=True)
class Part:
    """A slice with the terms of its task."""

    cut: Slice
    offer: Offer


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of a prediction: rows in the order of the records, and the tasks of its slices."""

    tasks: tuple[int, ...]
    rows: Array


def predict(
    market: Market, given: Any, x: Any, wishes: PredictWishes, *, verbose: Verbose = "auto"
) -> Array:
    """What a model makes of each record, in the order of the records."""
    return answers(market, given, x, wishes, verbose=verbose).rows


def answers(
    market: Market, given: Any, x: Any, wishes: PredictWishes, *, verbose: Verbose = "auto"
) -> Answers:
    """The same with the numbers of its tasks."""
    asked, subject = Asked.of(wishes), subject_of(market, given)
    with _opened(market, subject, x, None) as (records, _):
        parts = _prepared(market, subject, records, asked)
    return run(market, parts, asked, verbose)


def evaluate(
    market: Market, given: Any, x: Any, y: Any, wishes: PredictWishes, *, verbose: Verbose = "auto"
) -> dict[str, float]:
    """Loss and metrics, computed here from predictions that the market has verified."""
    asked, subject = Asked.of(wishes), subject_of(market, given)
    loss, metrics = subject.measures()
    with _opened(market, subject, x, y, measures=True) as (records, found):
        targets = targets_of(market, x, y, found)
        check_targets(subject, (loss, *metrics), targets, records.count)
        parts = _prepared(market, subject, records, asked)
    predicted = run(market, parts, asked, verbose).rows

    from trainyard.engine.measuring import measure

    return measure(loss, metrics, targets, predicted)


def predictions(market: Market, numbers: Sequence[int], *, verbose: Verbose = "auto") -> Array:
    """Wait for tasks that predict, and put together what they predict, in the order given."""
    if not numbers:
        raise RefusedError("which tasks? Give their numbers, in the order of the records")
    known: dict[int, Known] = {}
    for number in numbers:
        known[number], manifest = known_task(market, number)
        if not manifest.training.predicts:
            raise RefusedError(f"task {number} trains: trainyard.attach({number}) waits for it")
    remember(*numbers, predicts=True)
    titles = {number: f"task {number}" for number in numbers}
    with shown("predictions", len(titles), verbose) as show:
        waited = wait_for(market, known, titles, show)
        book, found = waited.book, [waited.numbers[number] for number in numbers]
        _require_settled(book, found)
        return np.concatenate([_collected(market, book, number) for number in found])


# Preparing


@dataclass(frozen=True, slots=True)
class Asked:
    """Wishes that make sense, before anything is read or copied."""

    wish: Wish
    workers: int
    batch: int
    attempts: int
    threads: int
    length: int | None
    budget: int | None

    @classmethod
    def of(cls, wishes: PredictWishes) -> "Asked":
        unknown = set(wishes) - set(PredictWishes.__annotations__)
        if unknown:
            raise RefusedError(
                f"{', '.join(sorted(unknown))}: no such setting; there are "
                f"{', '.join(sorted(PredictWishes.__annotations__))}"
            )
        reward, deadline, budget = (
            wishes.get("reward"),
            wishes.get("deadline"),
            wishes.get("budget"),
        )
        length = wishes.get("steps_per_segment")
        found = verification_of(wishes.get("verify", "audit"), "predict")
        wish = Wish(
            policy=found.policy,
            slots=found.slots,
            audits=found.audits,
            reward=None if reward is None else wei_of(reward, "reward"),
            train_for=None if deadline is None else seconds_of(deadline),
        )
        return cls(
            wish,
            workers=count_of(wishes.get("workers", 1), "workers"),
            batch=count_of(wishes.get("batch_size", _BATCH), "batch_size"),
            attempts=count_of(wishes.get("attempts", 1), "attempts"),
            threads=count_of(wishes.get("threads", 1), "threads"),
            length=None if length is None else count_of(length, "steps_per_segment"),
            budget=None if budget is None else wei_of(budget),
        )


@contextmanager
def _opened(
    market: Market, subject: Subject, x: Any, y: Any, *, measures: bool = False
) -> Iterator[tuple[Records, Array | None]]:
    """The records to predict for, and the targets that came with them."""
    inputs = subject.model.inputs
    if isinstance(x, str) or is_arrays(x):
        target = y if isinstance(y, str) else None
        yield unlabelled(market.content, inputs, x, target), None
        return
    with tempfile.TemporaryDirectory(prefix="trainyard-records-") as folder:
        arrays, targets = spooled(inputs, x, Path(folder), measures=measures)
        yield unlabelled(market.content, inputs, arrays), targets


def _prepared(market: Market, subject: Subject, records: Records, asked: Asked) -> list[Part]:
    """Slices with their data in content, and terms; nothing is paid yet."""
    draft = _Draft(subject.model, asked)
    # Refused here, if it is: nothing is in content yet.
    tried = draft.manifest(records.source())
    weights = add_weights(market.content, subject.weights(tried))
    manifests = _manifests(market.content, draft, records, weights)
    book = market.read().book
    parts = [Part(cut, offer_in(market, book, one, asked.wish)) for cut, one in manifests]
    escrow = sum(part.offer.terms.escrow for part in parts)
    check_total(escrow, asked.budget)
    require_money(market, escrow)
    return parts


def _manifests(
    content: Content, draft: "_Draft", records: Records, weights: str
) -> list[tuple[Slice, Manifest]]:
    """The manifest of each slice. Of arrays a worker fetches its own part alone, of what is one
    thing under a CID all of it."""
    cid, count = ("", records.count or 0) if records.add_part else records.add(content)
    found = []
    for cut in slices_of(count, draft.asked.batch, draft.asked.workers):
        if records.add_part is not None:
            own = records.source(records.add_part(content, cut.first, cut.count), cut.count)
            found.append((cut, draft.manifest(own, weights)))
        else:
            found.append((cut, draft.manifest(records.source(cid, count), weights, cut)))
    return found


@dataclass(frozen=True, slots=True)
class _Draft:
    model: Model
    asked: Asked

    def manifest(
        self, source: dict[str, Any], weights: str | None = None, cut: Slice | None = None
    ) -> Manifest:
        asked, count = self.asked, source["records"] if cut is None else cut.count
        length = asked.length
        if length is None:
            length = segment_length(count, asked.batch, self.model.output.size)
        training: dict[str, Any] = {
            "mode": "predict",
            "threads": asked.threads,
            "batch": asked.batch,
            "until": {"epochs": 1},
            "steps_per_segment": length,
            "seed": _SEED,
        }
        if cut is not None and cut.count != source["records"]:
            training["part"] = {"first": cut.first, "records": cut.count}
        document: dict[str, Any] = {
            "version": 1,
            "model": self.model.model_dump(mode="json", by_alias=True, exclude_none=True),
            "data": {"train": source},
            "training": training,
        }
        return Manifest.of(document | ({} if weights is None else {"initial_state": weights}))


# Running


@dataclass(slots=True)
class _Tasks:
    """The tasks of all slices, in their order; zero for one that has none, or whose last failed."""

    parts: Sequence[Part]
    numbers: list[int]
    known: dict[int, Known] = field(default_factory=dict)

    @property
    def posted(self) -> list[int]:
        return [one for one in self.numbers if one]

    @property
    def unposted(self) -> list[str]:
        pairs = zip(self.parts, self.numbers, strict=True)
        return [part.cut.title for part, one in pairs if not one]

    def detached(self) -> DetachedError:
        return DetachedError(*self.posted, predicts=True, unposted=self.unposted)


def run(market: Market, parts: Sequence[Part], asked: Asked, verbose: Verbose) -> Answers:
    tasks = _Tasks(parts, [0] * len(parts))
    try:
        with shown("slices", len(parts), verbose) as show:
            book = _settled(market, tasks, asked.attempts, show)
            found = []
            for number in tasks.numbers:
                found.append(_collected(market, book, number))
                show.steps(len(found), {})
            remember(*tasks.numbers, predicts=True)
            told = _told(tasks.numbers)
            show.say(f"{len(parts)} of {len(parts)} slices are settled, as tasks {told}")
        return Answers(tuple(tasks.numbers), np.concatenate(found))
    except KeyboardInterrupt as error:
        if not tasks.posted:
            raise
        detached = tasks.detached()
        for note in getattr(error, "__notes__", ()):
            detached.add_note(note)
        raise detached from None
    except (DetachedError, SlicesFailedError):
        # They name the tasks themselves.
        raise
    except Exception as error:
        # Of whatever kind it is: money is locked, and only we know for what.
        if tasks.posted:
            told = _told(tasks.posted)
            error.add_note(
                f"posted are tasks {told}: trainyard.predictions({told}) has their answers"
            )
        if tasks.posted and tasks.unposted:
            error.add_note(f"never posted were {', '.join(tasks.unposted)}")
        raise


def _told(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _settled(market: Market, tasks: _Tasks, attempts: int, show: Show) -> Book:
    """Post all slices, and those that fail again, until each has a task that is settled."""
    parts, numbers = tasks.parts, tasks.numbers
    left = list(range(len(parts)))
    for attempt in range(attempts):
        # What has failed is nothing to come back to.
        for place in left:
            numbers[place] = 0
        for place in left:
            numbers[place] = _posted(market, parts[place], tasks, show)
        titles = {numbers[place]: parts[place].cut.title for place in left}
        known = {number: tasks.known[number] for number in titles}
        try:
            waited = wait_for(market, known, titles, show)
        except DetachedError as error:
            for place, number in zip(left, error.tasks, strict=True):
                numbers[place] = number
            raise tasks.detached() from None
        book = waited.book
        for place in left:
            numbers[place] = waited.numbers[numbers[place]]
        left = [one for one in left if book.tasks[numbers[one]].state is not TaskState.SETTLED]
        if not left:
            return book
        if attempt + 1 < attempts:
            show.say(f"{len(left)} of {len(parts)} slices failed, and are posted again")
    titles = {number: part.cut.title for number, part in zip(numbers, parts, strict=True)}
    _require_settled(book, numbers, titles)
    return book


def _posted(market: Market, part: Part, tasks: _Tasks, show: Show) -> int:
    require_wanted(*tasks.posted, unposted=tasks.unposted)
    try:
        posted = post(market, part.offer)
    except KeyboardInterrupt as error:
        error.add_note(
            f"{part.cut.title} may be posted all the same: 'trainyard tasks' shows whether they are"
        )
        raise
    tasks.known[posted.number] = posted.known
    show.say(f"{part.cut.title} are task {posted.number}")
    return posted.number


def _require_settled(
    book: Book, numbers: Sequence[int], titles: Mapping[int, str] = MappingProxyType({})
) -> None:
    failed: dict[int, str] = {}
    for number in numbers:
        try:
            require_settled(number, book.tasks[number])
        except TaskFailedError as error:
            failed[number] = f"{titles[number]}: {error}" if number in titles else str(error)
    if failed:
        raise SlicesFailedError(numbers, failed)


# What came of it


def _collected(market: Market, book: Book, number: int) -> Array:
    """The predictions of a settled task."""
    with tempfile.TemporaryDirectory(prefix="trainyard-predictions-") as folder:
        try:
            return collect_from(
                market, book, number, Path(folder), lambda run: read_predictions(run.published)
            )
        except StateError as error:
            raise TaskFailedError(
                number, f"is settled, but {error}: nobody has looked there; ask for more audits"
            ) from error
