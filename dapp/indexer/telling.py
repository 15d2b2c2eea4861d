"""What a step of the index tells whoever listens."""

from typing import Any

from dapp.indexer.indexing import Step
from dapp.indexer.market import Market
from dapp.live.sequence import EVERYBODY, MARKET, account_topic, prune, task_topic, tell
from dapp.timeline import event_view
from trainyard.chain.cursor import Found, Seen, Undone
from trainyard.protocol.explaining import namer, names_of
from trainyard.protocol.telling import task_of

# More at once is history that is being read, which nobody wants to hear event by event.
_MOST_TASKS, _MOST_EVENTS = 64, 1_000


class Teller:
    def __init__(self, kept: int, kept_bytes: int) -> None:
        self._kept, self._kept_bytes = kept, kept_bytes

    def __call__(self, step: Step) -> None:
        match step.batch:
            case Undone():
                self._tell_undone(step, step.batch)
            case Found():
                if len(step.touched.tasks) > _MOST_TASKS or len(step.batch.events) > _MOST_EVENTS:
                    tell(step.session, "reset", {}, [EVERYBODY])
                else:
                    self._tell_found(step, step.batch)
        prune(step.session, self._kept, self._kept_bytes)

    def _tell_undone(self, step: Step, batch: Undone) -> None:
        tasks = sorted(step.touched.tasks)
        topics = {MARKET, *map(task_topic, tasks), *map(account_topic, step.touched.people)}
        tell(step.session, "undone", {"block": batch.to.number, "tasks": tasks}, topics)

    def _tell_found(self, step: Step, batch: Found) -> None:
        market, by_task = step.view.market, dict[int, list[Seen]]()
        for seen in batch.events:
            number = task_of(seen.event)
            if number is not None:
                by_task.setdefault(number, []).append(seen)
        for number, events in by_task.items():
            self._tell_task(step, market, number, events)
        workers = {who for who in step.touched.people if who in market.book.workers}
        for who in sorted(workers):
            tell(step.session, "worker", {"address": who}, [MARKET, account_topic(who)])

    def _tell_task(self, step: Step, market: Market, number: int, events: list[Seen]) -> None:
        task = market.book.tasks[number]
        name = namer(names_of(market.book, number))
        head = step.batch.to.number
        topics = {MARKET, task_topic(number), *map(account_topic, market.parts[number])}
        document: dict[str, Any] = {
            "task": number,
            "state": task.state.name.lower(),
            "block": head,
        }
        tell(step.session, "task", document, topics)
        views = [
            event_view(
                seen.event,
                name,
                block=seen.block.number,
                block_hash=seen.block.hash,
                place=seen.index,
                transaction=seen.transaction,
                time=step.times[seen.block.number],
                head=head,
            ).model_dump(mode="json")
            for seen in events
        ]
        tell(step.session, "timeline", {"task": number, "events": views}, [task_topic(number)])
