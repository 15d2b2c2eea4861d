"""Who goes away while a prediction is posted, awaited or collected knows how to come back."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.market import TaskState
from trainyard.protocol.offering import Wish
from trainyard.sdk import predicting
from trainyard.sdk.errors import DetachedError
from trainyard.sdk.following import LEAVING, Known, Leaving
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer, Posted
from trainyard.sdk.predicting import Asked, Part, run
from trainyard.sdk.slicing import slices_of
from trainyard.sdk.waiting import Waited

MARKET = cast(Market, None)
PARTS = [Part(cut, cast(Offer, None)) for cut in slices_of(4, batch=1, workers=4)]
ASKED = Asked(Wish(), workers=4, batch=1, attempts=1, threads=1, length=None, budget=None)

KNOWN = Known(b"m" * 32, f"0x{'11' * 20}")


class Play:
    """Posting, waiting and collecting without a market; something happens at one of the calls."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.happens: dict[str, BaseException | threading.Event] = {}
        # By how much a reorganisation moves all numbers on.
        self.later = 0
        patch.setattr(predicting, "post", lambda *_: Posted(self._call("post"), KNOWN))
        patch.setattr(predicting, "wait_for", self._wait_for)
        patch.setattr(predicting, "_collected", self._collected)

    def _call(self, name: str) -> int:
        self.calls.append(name)
        number = self.calls.count(name)
        match self.happens.get(f"{name} {number}"):
            case threading.Event() as leaving:
                leaving.set()
            case BaseException() as error:
                raise error
        return number

    def _wait_for(self, _: Any, known: Any, *__: Any) -> Waited:
        self._call("wait")
        settled = SimpleNamespace(state=TaskState.SETTLED)
        book = SimpleNamespace(tasks=dict.fromkeys(range(1, 19), settled))
        return Waited(cast(Book, book), {one: one + self.later for one in known})

    def _collected(self, *_: Any) -> Any:
        return np.array([self._call("collect")])


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    return Play(monkeypatch)


def test_slices_come_back_in_their_order(play: Play) -> None:
    found = run(MARKET, PARTS, ASKED, 0)

    assert (found.tasks, found.rows.tolist()) == ((1, 2, 3, 4), [1, 2, 3, 4])


def test_slices_are_collected_by_the_numbers_that_a_reorg_gave_them(play: Play) -> None:
    play.later = 10

    assert run(MARKET, PARTS, ASKED, 0).tasks == (11, 12, 13, 14)


def test_who_leaves_when_all_is_collected_knows_the_tasks(play: Play) -> None:
    leaving = Leaving()
    play.happens["collect 4"] = leaving
    before = LEAVING.set(leaving)
    try:
        run(MARKET, PARTS, ASKED, 0)
    finally:
        LEAVING.reset(before)

    assert leaving.detached is not None
    assert leaving.detached.tasks == (1, 2, 3, 4)


def test_who_is_cancelled_hears_which_slices_were_never_posted(play: Play) -> None:
    leaving = Leaving()
    play.happens["post 2"] = leaving
    before = LEAVING.set(leaving)
    try:
        with pytest.raises(DetachedError) as found:
            run(MARKET, PARTS, ASKED, 0)
    finally:
        LEAVING.reset(before)

    assert found.value.tasks == (1, 2)
    assert found.value.unposted == ("records 2 to 2", "records 3 to 3")
    assert "never posted were records 2 to 2, records 3 to 3: predict these" in str(found.value)


@pytest.mark.parametrize("when", ["wait 1", "collect 2"])
def test_after_the_post_ctrl_c_detaches(play: Play, when: str) -> None:
    play.happens[when] = KeyboardInterrupt()

    with pytest.raises(DetachedError, match=r"trainyard\.predictions\(1, 2, 3, 4\)") as found:
        run(MARKET, PARTS, ASKED, 0)

    assert (found.value.tasks, found.value.unposted) == ((1, 2, 3, 4), ())


def test_ctrl_c_amid_a_post_says_that_it_may_be_posted(play: Play) -> None:
    play.happens["post 1"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as first:
        run(MARKET, PARTS, ASKED, 0)
    assert "records 0 to 0 may be posted all the same" in first.value.__notes__[0]

    play.calls.clear()
    play.happens = {"post 3": KeyboardInterrupt()}
    with pytest.raises(DetachedError, match=r"trainyard\.predictions\(1, 2\)") as third:
        run(MARKET, PARTS, ASKED, 0)
    assert "records 2 to 2 may be posted all the same" in third.value.__notes__[0]


def test_an_error_after_the_post_names_the_tasks(play: Play) -> None:
    play.happens["collect 3"] = OSError("the disk is full")
    with pytest.raises(OSError, match="the disk is full") as found:
        run(MARKET, PARTS, ASKED, 0)
    assert "trainyard.predictions(1, 2, 3, 4)" in found.value.__notes__[0]

    play.calls.clear()
    play.happens = {"post 2": OSError("no answer")}
    with pytest.raises(OSError, match="no answer") as early:
        run(MARKET, PARTS, ASKED, 0)
    assert "trainyard.predictions(1)" in early.value.__notes__[0]
    assert "records 1 to 1, records 2 to 2, records 3 to 3" in early.value.__notes__[1]
