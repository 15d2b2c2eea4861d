"""A reorg gives a number to another task: what was done for the one before is not done for it."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from tests.agent.books import CLAIM, ME, NOW, PEER, TRACE, situation, task, terms
from tests.agent.books import FETCHED as KNOWN
from tests.agent.test_deciding import doing, keys
from tests.agent.worksites import SETTINGS, Place, seeing, worksite
from trainyard.protocol.ledger.book import Book, Slot, Task, Worker
from trainyard.protocol.market import TaskState
from worker_agent.actions import Fetch, Train
from worker_agent.deciding.offers import for_offers
from worker_agent.looking import situation_of
from worker_agent.postings import is_of_another, marked
from worker_agent.progress import CARD, FETCHED, MANIFEST, Progress, Shelf
from worker_agent.progress import CLAIM as CLAIM_FILE
from worker_agent.progress import PEER as KEYS
from worker_agent.progress import TRACE as TRACE_FILE
from worker_agent.settings import Settings
from worker_agent.situation import Situation

ONE, OTHER = b'{"seed": 1}', b'{"seed": 2}'
FOUND = {
    "mode": "single",
    "workers": 1,
    "segments": 8,
    "hours": 0.01,
    "memory_bytes": 1,
    "disk_bytes": 1,
}


def posted(manifest: bytes, state: TaskState = TaskState.RUNNING, *workers: str) -> Task:
    who = workers or (ME,)
    return task(state, who, terms=terms(slots=len(who), manifest=sha256(manifest).digest()))


def done(shelf: Shelf, manifest: bytes) -> None:
    """All that somebody leaves in the folder of a task who has trained it."""
    shelf.write({}, MANIFEST)
    shelf.path(MANIFEST).write_bytes(manifest)
    shelf.write(FOUND, FETCHED)
    shelf.write({"digest": "6b" * 32, "port": 7000}, CARD)
    shelf.write({"result": CLAIM.result.hex(), "root": CLAIM.root.hex()}, CLAIM_FILE)
    shelf.write({"states": [state.hex() for state in TRACE.states]}, TRACE_FILE)
    shelf.path(KEYS).mkdir()
    shelf.path(KEYS, "key").write_bytes(b"k" * 32)


def seen(place: Place, found: Task) -> Situation:
    return situation_of(
        place.home,
        Settings.model_validate(SETTINGS | {"content": {"advertise": "http://127.0.0.1:1"}}),
        ME,
        found.terms.env_class,
        book=book(found),
        now=NOW,
        block=100,
        purse=10**20,
        gas_price=0,
        salt=lambda number, panel, seat: bytes(32),
    )


def book(found: Task) -> Book:
    return Book(workers={ME: Worker(found.terms.env_class, b"p" * 32)}, tasks={1: found})


def test_claim_to_another_task_of_the_number_is_not_submitted(tmp_path: Path) -> None:
    with worksite(tmp_path) as place:
        done(Shelf(place.home.task(1)), ONE)

        assert keys(seen(place, posted(ONE))) == ["1/submit/0"]
        other = seen(place, posted(OTHER))

    assert keys(other) == []
    assert doing(other) == [Fetch(1)]


def test_task_is_not_joined_by_what_was_fetched_for_another_of_its_number(tmp_path: Path) -> None:
    with worksite(tmp_path) as place:
        done(Shelf(place.home.task(1)), ONE)
        vacant = replace(posted(OTHER, TaskState.OPEN), joined=0, slots=[Slot()])

        [action] = for_offers(seen(place, vacant))

    assert action == Fetch(1)


def test_folder_is_put_aside_and_comes_back_with_its_task(tmp_path: Path) -> None:
    one, other = posted(ONE), posted(OTHER)
    with worksite(tmp_path) as place:
        shelf, shelving = Shelf(place.home.task(1)), place.site.shelving
        shelving.sort(book(one))
        place.site.perform(Fetch(1), seeing(one))
        place.children.stop(1, "fetch")
        done(shelf, ONE)

        shelving.sort(book(other))
        progress = shelf.progress()
        assert (progress.fetched, progress.claim, progress.trace) == (None, None, None)
        # It names the number only, and others know us by it.
        assert progress.card is not None
        assert shelf.path(KEYS, "key").read_bytes() == b"k" * 32

        shelving.sort(book(one))
        assert shelf.progress().claim == CLAIM
        assert shelf.path(MANIFEST).read_bytes() == ONE


def test_what_runs_for_a_task_ends_when_another_has_its_number(tmp_path: Path) -> None:
    one, other = posted(ONE), posted(OTHER)
    with worksite(tmp_path) as place:
        place.site.perform(Fetch(1), seeing(one))
        assert place.children.of(1) == ["fetch"]

        place.site.shelving.sort(book(other))

        assert place.children.of(1) == []
        place.site.perform(Fetch(1), seeing(other))
        assert place.children.of(1) == ["fetch"]


@pytest.mark.parametrize(("manifest", "is_kept"), [(ONE, True), (OTHER, False)])
def test_folder_of_an_earlier_version_is_judged_by_its_manifest(
    tmp_path: Path, manifest: bytes, is_kept: bool
) -> None:
    with worksite(tmp_path) as place:
        shelf = Shelf(place.home.task(1))
        done(shelf, ONE)

        place.site.shelving.sort(book(posted(manifest)))

        assert (shelf.progress().claim == CLAIM) is is_kept
        assert shelf.path(MANIFEST).exists() is is_kept


def test_same_manifest_by_other_terms_is_another_task(tmp_path: Path) -> None:
    """It may have been refused for its terms alone."""
    one = posted(ONE)
    with worksite(tmp_path) as place:
        shelf = Shelf(place.home.task(1))
        place.site.perform(Fetch(1), seeing(one))
        place.children.stop(1, "fetch")
        shelf.write({"reason": "post it with the policy Score"}, "refused.json")

        place.site.shelving.sort(book(replace(one, terms=replace(one.terms, segments=9))))

        assert shelf.progress().refused is None


def test_who_kept_its_card_fetches_and_trains_with_the_others() -> None:
    """Its join was mined for another task of the number, and its stake is in that one."""
    found = task(TaskState.RUNNING, (ME, PEER))

    assert doing(situation(found, Progress(card=b"k" * 32))) == [Fetch(1)]
    ready = Progress(card=b"k" * 32, fetched=KNOWN)
    assert doing(situation(found, ready)) == [Train(1, 0)]


def test_what_was_sent_for_a_task_was_not_sent_for_another_of_its_number() -> None:
    one, other = book(posted(ONE)), book(posted(OTHER))
    key = marked("1/join/6b", one)

    assert key != marked("1/join/6b", other)
    assert marked("register/1", one) == "register/1"
    assert not is_of_another(key, one)
    assert not is_of_another(f"{key}#2", one)
    assert is_of_another(key, other)
    assert is_of_another(f"{key}#2", Book())
    # Of an agent that did not say for which task it was.
    assert not is_of_another("1/join/6b", other)
