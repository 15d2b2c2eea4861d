"""Who awaits a function of ours and is cancelled knows what became of it."""

import asyncio
import threading
from collections.abc import Callable

import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.aio import _awaited
from trainyard.sdk.errors import DetachedError, NotPostedError
from trainyard.sdk.following import LEAVING, remember, require_wanted

_PATIENCE_S = 30.0


def _posting(begun: threading.Event, *posted: int) -> Callable[[], None]:
    """Waits as `fit` does, for somebody to leave; some tasks are posted by then."""

    def run() -> None:
        leaving = LEAVING.get()
        assert leaving is not None
        begun.set()
        assert leaving.wait(_PATIENCE_S)
        require_wanted(*posted)

    return run


async def _cancelled(function: Callable[[], None], begun: threading.Event) -> BaseException:
    task = asyncio.create_task(_awaited(function)())
    await asyncio.to_thread(begun.wait, _PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as found:
        await task
    return found.value


def test_cancelling_tells_the_number_of_the_task_that_goes_on() -> None:
    begun = threading.Event()

    error = asyncio.run(_cancelled(_posting(begun, 7), begun))

    assert isinstance(error.__cause__, DetachedError)
    assert error.__cause__.task == 7
    assert "trainyard.predictions(7)" in error.__notes__[0]


def test_cancelling_before_a_task_is_posted_posts_none() -> None:
    begun = threading.Event()

    error = asyncio.run(_cancelled(_posting(begun), begun))

    assert isinstance(error.__cause__, NotPostedError)
    assert "nothing is posted" in str(error.__cause__)


@pytest.mark.parametrize("posted", [(), (7,), (7, 8)])
def test_cancelling_when_all_is_done_tells_the_tasks(
    posted: tuple[int, ...],
) -> None:
    begun = threading.Event()

    def run() -> None:
        leaving = LEAVING.get()
        assert leaving is not None
        if posted:
            remember(*posted, predicts=True)
        begun.set()
        assert leaving.wait(_PATIENCE_S)

    error = asyncio.run(_cancelled(run, begun))

    cause = error.__cause__
    # What posts nothing, as `quote` and `connect`, has nothing to tell.
    assert (cause.tasks if isinstance(cause, DetachedError) else ()) == posted


def test_what_comes_of_it_is_returned_and_raised_as_it_is() -> None:
    assert asyncio.run(_awaited(lambda: 5)()) == 5

    def failing() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is") as found:
        asyncio.run(_awaited(failing)())
    assert found.value.__cause__ is None


def test_who_stops_waiting_finds_the_number_below_the_timeout() -> None:
    begun = threading.Event()

    with pytest.raises(TimeoutError) as late:
        asyncio.run(asyncio.wait_for(_awaited(_posting(begun, 7, 8))(), 0.1))

    cancelled = late.value.__cause__
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(cancelled.__cause__, DetachedError)
    assert cancelled.__cause__.tasks == (7, 8)
