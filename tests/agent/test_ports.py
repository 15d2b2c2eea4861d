"""Tasks that an agent is in at once are reached at ports of their own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account

from tests.agent.books import MARKET, PEER, task, terms
from tests.agent.worksites import Place, seeing, worksite
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from worker_agent.actions import MakeCard
from worker_agent.joining import NoPortError, card_port, choose_port, read_card
from worker_agent.progress import Shelf
from worker_agent.settings import PeerSettings

ME = str(Account.from_key(b"k" * 32).address)
OPEN = replace(task(TaskState.OPEN, (PEER,), terms=terms(slots=2)), joined=1)
OURS = task(TaskState.RUNNING, (ME, PEER))
FIRST = PeerSettings(port=7700)


def made(place: Place, number: int, *tasks: Task) -> tuple[int, str]:
    """The port of the card that is made for a task, and where others are to reach it."""
    place.site.perform(MakeCard(number), seeing(*tasks))
    shelf = Shelf(place.home.task(number))
    digest = bytes.fromhex(json.loads(shelf.path("card.json").read_bytes())["digest"])
    [endpoint] = read_card(place.content, digest, MARKET, number, ME).endpoints
    return card_port(shelf), endpoint


def test_a_second_task_has_a_port_of_its_own(tmp_path: Path) -> None:
    policy, peers = {"concurrency": 2}, {"port": 7700, "advertise": "worker.example.org:9000"}
    with worksite(tmp_path, policy=policy, peers=peers) as place:
        assert made(place, 1, OPEN, OPEN) == (7700, "worker.example.org:9000")
        # The first may be joined yet.
        assert made(place, 2, OPEN, OPEN) == (7701, "worker.example.org:9001")
        assert made(place, 3, OURS, OPEN, OPEN) == (7701, "worker.example.org:9001")
        over = replace(OURS, state=TaskState.SETTLED)
        assert made(place, 3, over, OURS, OPEN) == (7700, "worker.example.org:9000")


@pytest.mark.parametrize(
    ("held", "promised", "port"),
    [((), (), 7700), ((7700,), (), 7701), ((7700,), (7701,), 7701), ((), (7700,), 7701)],
)
def test_ports_of_tasks_that_we_are_in_are_never_given_twice(
    held: tuple[int, ...], promised: tuple[int, ...], port: int
) -> None:
    assert choose_port(FIRST, 2, held, promised) == port


def test_when_all_ports_are_held_it_says_so() -> None:
    with pytest.raises(NoPortError, match="7700 to 7701"):
        choose_port(FIRST, 2, (7700, 7701), ())


def test_without_a_first_port_any_free_one_is_taken() -> None:
    assert choose_port(PeerSettings(), 1, (), ()) > 1023
