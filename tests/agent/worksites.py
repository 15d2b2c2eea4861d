"""A worksite on its own, for tests of what it writes and removes: its processes do nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_account import Account

from tests.agent.books import MARKET, NOW
from trainyard.content.content import Content
from trainyard.protocol.ledger.book import Book, Task
from worker_agent.children import Children
from worker_agent.opening import open_agent_content
from worker_agent.settings import Home, Settings
from worker_agent.sight import Sight
from worker_agent.working import Worksite

SETTINGS: dict[str, Any] = {
    "chain": {
        "endpoints": ["http://127.0.0.1:1"],
        "chain_id": MARKET.chain_id,
        "market": MARKET.address,
        "start_block": 0,
    }
}


class IdleSite(Worksite):
    # It says something, and ends.
    work_module = runner_module = "this"


@dataclass
class Place:
    home: Home
    settings: Settings
    content: Content
    children: Children
    site: Worksite


@contextmanager
def worksite(folder: Path, **settings: Any) -> Iterator[Place]:
    home, known = Home(folder / "home"), Settings.model_validate(SETTINGS | settings)
    content, children = open_agent_content(home, known), Children(home.scratch)
    account = Account.from_key(b"k" * 32)
    site = IdleSite(home, known, account, MARKET, content, children, lambda moment: None)
    try:
        yield Place(home, known, content, children, site)
    finally:
        children.stop_all()
        content.close()


def seeing(*tasks: Task, now: int = NOW) -> Sight:
    """A look at a market with these tasks, of which the first is task 1."""
    return Sight(Book(tasks=dict(enumerate(tasks, start=1))), 100, now, 0)
