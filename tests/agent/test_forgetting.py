"""An agent that runs for months: what is over costs it no look and no room."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.books import CLASS, ME, NOW, OTHER, TRAINED, disputed, situation, task
from tests.agent.worksites import Place, seeing, worksite
from tests.unit.test_engine_evidence import MANIFEST, STATES
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.engine import publishing
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.sealing import seal
from trainyard.engine.unsealing import Evidence
from trainyard.protocol.ledger.book import Book, Dispute
from trainyard.protocol.market import DisputeState, TaskState
from worker_agent.actions import Action, Forget, Seal, Stop
from worker_agent.deciding import decide
from worker_agent.deciding.forgetting import is_at_rest
from worker_agent.forgetting import forget
from worker_agent.jobs import ForgetJob
from worker_agent.looking import situation_of
from worker_agent.past import Past
from worker_agent.pinning import note_pins
from worker_agent.policy import Policy as Wanted
from worker_agent.progress import CARD, CLAIM, LIVE, SERVED, TRACE, Shelf
from worker_agent.reporting import task_reports
from worker_agent.settings import Home
from worker_agent.situation import Ended, Situation
from worker_agent.working import FORGET

SETTLED = task(TaskState.SETTLED)
SHOWN = replace(TRAINED, is_open=True)
HOUR_S = 3600
KEEP_S = int(Wanted().keep_hours * HOUR_S)


def forgotten(s: Situation) -> list[Action]:
    return [one for one in decide(s) if isinstance(one, Forget)]


@pytest.mark.parametrize(
    ("since", "is_due"),
    [
        (Ended(NOW - KEEP_S, 50), True),
        (Ended(NOW - KEEP_S + 1, 50), False),
        # Twelve blocks deep, of which the head is one.
        (Ended(NOW - KEEP_S, 89), True),
        (Ended(NOW - KEEP_S, 90), False),
    ],
)
def test_a_task_is_forgotten_late_and_deep(since: Ended, is_due: bool) -> None:
    s = situation(SETTLED, SHOWN, ended={1: since}, confirmations=12)
    assert forgotten(s) == ([Forget((1,))] if is_due else [])


def test_what_was_only_looked_at_is_forgotten_at_once() -> None:
    cancelled = task(TaskState.CANCELLED, workers=())
    assert forgotten(situation(cancelled, ended={1: Ended(NOW, 0)})) == [Forget((1,))]
    ours = task(TaskState.CANCELLED)
    assert forgotten(situation(ours, ended={1: Ended(NOW, 0)})) == []


def test_nothing_is_forgotten_that_the_market_could_still_ask_for() -> None:
    ended = {1: Ended(0, 0)}
    assert forgotten(situation(task(TaskState.WINDOW), SHOWN, ended=ended)) == []
    dispute = Dispute(accuser=OTHER, state=DisputeState.HEARING, deadline=NOW, round=1)
    assert forgotten(situation(disputed(SETTLED, 3, dispute), SHOWN, ended=ended)) == []
    void = replace(dispute, state=DisputeState.VOID)
    assert forgotten(situation(disputed(SETTLED, 3, void), SHOWN, ended=ended)) != []


def test_what_is_paid_for_is_shown_before_it_rests() -> None:
    assert not is_at_rest(situation(SETTLED), 1, SETTLED)
    assert Seal(1, (), is_open=True) in decide(situation(SETTLED))
    assert is_at_rest(situation(SETTLED, SHOWN), 1, SETTLED)
    failed = task(TaskState.FAILED)
    assert is_at_rest(situation(failed), 1, failed)
    running = task(TaskState.RUNNING)
    assert not is_at_rest(situation(running, SHOWN), 1, running)


def test_of_tasks_that_left_nothing_here_only_disputes_are_seen_to() -> None:
    assert decide(situation(SETTLED, gone={1})) == []
    assert [type(one) for one in decide(situation(SETTLED))] == [Stop, Seal]
    dispute = Dispute(accuser=OTHER, state=DisputeState.HEARING, deadline=NOW - 900, round=1)
    left = situation(disputed(SETTLED, 3, dispute), gone={1})
    assert [one.key for one in decide(left)] == ["1/resolve/3/1/HEARING"]  # type: ignore[union-attr]


_OPENED: list[str] = []
_IS_COUNTING = False


def _count(event: str, args: tuple[Any, ...]) -> None:
    if _IS_COUNTING and event == "open" and isinstance(args[0], str | bytes | Path):
        _OPENED.append(str(args[0]))


sys.addaudithook(_count)


@contextmanager
def counting() -> Iterator[list[str]]:
    """The files that are opened meanwhile."""
    global _IS_COUNTING
    _OPENED.clear()
    _IS_COUNTING = True
    try:
        yield _OPENED
    finally:
        _IS_COUNTING = False


def lay_out(home: Home, number: int) -> Shelf:
    """What a finished task leaves, as far as it matters here."""
    shelf = Shelf(home.task(number))
    shelf.write({"states": [state.hash.hex() for state in STATES]}, TRACE)
    shelf.write({"segments": [], "is_open": True}, SERVED)
    shelf.write({"result": "11" * 32, "root": "22" * 32}, CLAIM)
    return shelf


def look(place: Place, past: Past, book: Book, now: int = NOW, block: int = 100) -> Situation:
    """As an agent does at each look."""
    s = situation_of(
        place.home,
        place.settings,
        ME,
        CLASS,
        book=book,
        now=now,
        block=block,
        purse=0,
        gas_price=0,
        salt=lambda task, panel, seat: bytes(32),
        ended=past.look(book, now, block),
        at_rest=past.at_rest,
    )
    past.at_rest.update(n for n in s.ended if is_at_rest(s, n, book.tasks[n]))
    return s


def test_hundreds_of_ended_tasks_cost_no_look_at_their_files(tmp_path: Path) -> None:
    book = Book(tasks=dict.fromkeys(range(1, 401), SETTLED))
    with worksite(tmp_path) as place:
        for number in range(1, 201):
            lay_out(place.home, number)
        for number in range(201, 401):
            Shelf(place.home.past(number)).write({}, LIVE)
        past = Past(place.home)
        look(place, past, book)

        with counting() as opened:
            s = look(place, past, book, NOW + 1, 101)
            decide(s)
        assert opened == []

        # Of a task that the chain takes back all is looked at.
        again = replace(SETTLED, state=TaskState.WINDOW)
        with counting() as opened:
            s = look(place, past, Book(tasks=book.tasks | {7: again}), NOW + 2, 102)
        assert {str(Path(one).parent) for one in opened} == {str(place.home.task(7))}
        assert s.of(7).is_open
        assert 7 not in s.ended


def test_the_first_sight_of_an_end_survives_a_restart(tmp_path: Path) -> None:
    book = Book(tasks={1: SETTLED})
    with worksite(tmp_path) as place:
        lay_out(place.home, 1)
        assert Past(place.home).look(book, NOW, 100) == {1: Ended(NOW, 100)}
        past = Past(place.home)
        assert past.look(book, NOW + 99, 200) == {1: Ended(NOW, 100)}
        running = Book(tasks={1: replace(SETTLED, state=TaskState.WINDOW)})
        assert past.look(running, NOW + 100, 201) == {}
        assert past.look(book, NOW + 101, 202) == {1: Ended(NOW + 101, 202)}


def keep(place: Place, number: int, *blocks: bytes) -> list[Cid]:
    """Blocks that are pinned for a task, and a large file in its folder."""
    shelf = lay_out(place.home, number)
    cids = [Cid.of(Codec.RAW, block) for block in blocks]
    with place.content.store.batch() as batch:
        for cid, block in zip(cids, blocks, strict=True):
            batch.put(cid, block)
            batch.pin(cid)
    note_pins(shelf, cids)
    shelf.path("run").mkdir()
    shelf.path("run", "state").write_bytes(bytes(100_000))
    live = {"energy_j": 7.5, "phase": "ended", "step": 1, "steps": 1, "loss": None, "at": 0}
    more = {"metrics": {}, "examples_per_s": 0.0, "silent": {}, "states": 9, "segments": 8}
    shelf.write(live | more, LIVE)
    shelf.note("seal", "it had no room")
    return cids


def test_forgetting_frees_the_disk_and_keeps_what_reports_need(tmp_path: Path) -> None:
    with worksite(tmp_path) as place:
        alone, shared = keep(place, 1, b"only of task 1", b"of both tasks")
        keep(place, 2, b"of both tasks")
        [card] = keep(place, 3, b"a card")
        Shelf(place.home.task(1)).write({"digest": card.digest.hex(), "port": 1}, CARD)
        Shelf(place.home.task(3)).path("pins.json").unlink()
        Shelf(place.home.task(3)).path(CLAIM).unlink()
        job = ForgetJob(home=place.home.folder, task=1, cards={1: ()})

        forget(job, place.home, place.settings, place.content)

        has = place.content.store.has
        assert (has(alone), has(shared), has(card)) == (False, True, False)
        assert not place.home.task(1).exists()
        assert not any(place.home.scratch.iterdir())
        assert sum(path.stat().st_size for path in place.home.past(1).rglob("*")) < 50_000
        [report] = task_reports(place.home, Book(tasks={1: SETTLED}), ME, NOW, 100, ended=True)
        assert report["training"]["energy_j"] == 7.5
        assert report["failures"]["seal"]["reason"] == "it had no room"
        # It may be killed at any moment, and then does all of it again.
        forget(job, place.home, place.settings, place.content)


def test_a_store_that_others_use_too_is_left_as_it_is(tmp_path: Path) -> None:
    with worksite(tmp_path, content={"store": tmp_path / "shared"}) as place:
        [cid] = keep(place, 1, b"which another agent serves too")
        job = ForgetJob(home=place.home.folder, task=1, cards={1: ()})

        forget(job, place.home, place.settings, place.content)

        assert cid in place.content.store.pins()
        assert not place.home.task(1).exists()


def test_nothing_is_collected_while_a_task_serves_what_is_not_noted(tmp_path: Path) -> None:
    with worksite(tmp_path) as place:
        keep(place, 1, b"of task 1")
        lay_out(place.home, 2)
        with place.content.store.batch() as batch:
            batch.put(bare := Cid.of(Codec.RAW, b"older"), b"older")
        job = ForgetJob(home=place.home.folder, task=1, cards={1: ()})

        forget(job, place.home, place.settings, place.content)

        assert place.content.store.has(bare)


def test_forgetting_is_done_by_one_process_and_not_while_work_goes_on(tmp_path: Path) -> None:
    sight = seeing(SETTLED, SETTLED, SETTLED)
    with worksite(tmp_path) as place:
        for number in (1, 2, 3):
            lay_out(place.home, number)
        place.site.perform(Seal(1), sight)
        place.site.perform(Forget((1, 2, 3)), sight)
        job = json.loads((place.home.folder / FORGET / "job.json").read_bytes())
        assert job["cards"] == {"2": [(b"k" * 32).hex()], "3": [(b"k" * 32).hex()]}
        place.site.perform(Forget((1,)), sight)
        assert place.children.doing(FORGET) == [2]


def test_a_collection_leaves_all_that_a_sealed_run_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "find_class", lambda: type("Class", (), {"id": "ab" * 32}))
    journal = Journal.open(tmp_path / "run", MANIFEST.canonical)
    for number, state in enumerate(STATES):
        journal.append(Entry(number=number, state=state.hash.hex(), step=3 * number), state)
    content = Content(EmbeddedStore(tmp_path / "store"))
    try:
        pinned = set[Cid]()
        result = seal(journal, content, served=(1,), pinned=pinned.add)
        content.gc()

        assert pinned == content.store.pins()
        root = bytes.fromhex(result.root)
        evidence = Evidence.open(content, MANIFEST, result.digest, root, tmp_path / "evidence")
        assert len(evidence.inputs(1).states) == 1
    finally:
        content.close()
