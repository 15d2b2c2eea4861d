"""What keeps an agent from joining a task that it decided to join, for `why-not` to say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainyard.protocol.ledger.book import Book
from worker_agent.postings import is_of_another


@dataclass(slots=True)
class Hindrances:
    # Of tasks for which no card could be made: why, and after a colon what would change that.
    _cardless: dict[int, str] = field(default_factory=dict)

    def no_card(self, task: int, reason: str) -> None:
        self._cardless[task] = reason

    def has_card(self, task: int) -> None:
        self._cardless.pop(task, None)

    def look(self, given_up: Mapping[str, str], book: Book) -> dict[int, tuple[str, str]]:
        """By the task: why, and what would change it. `given_up` is by the keys of what was."""
        found = dict[int, tuple[str, str]]()
        for number, reason in self._cardless.items():
            why, _, change = reason.partition(": ")
            found[number] = f"no card can be made: {why}", change or "see the agent's log"
        for key, reason in given_up.items():
            task, _, what = key.partition("/")
            if what.startswith("join/") and not is_of_another(key, book):
                found[int(task)] = f"joining it was given up: {reason}", "nothing: take another"
        return found
