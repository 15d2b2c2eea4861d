"""The functions of `trainyard` for an event loop: `history = await trainyard.aio.fit(model, x, y)`.

Each runs in a thread of its own. Who cancels one detaches from its task, which goes on; `attach`
comes back. What became of it is the cause of the `CancelledError`: a `DetachedError` has the number
of the `task`, a `NotPostedError` says that there is none. So cancelling waits until the thread has
let go; cancelled once more, it does not. A `Market` is for one of them at a time.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from trainyard import face
from trainyard.sdk.following import LEAVING, Leaving

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _awaited(
    function: Callable[_Given, _Result],
) -> Callable[_Given, Coroutine[Any, Any, _Result]]:
    @functools.wraps(function)
    async def run(*args: _Given.args, **given: _Given.kwargs) -> _Result:
        leaving = Leaving()
        before = LEAVING.set(leaving)
        # The thread has a copy of the context, and so of what is set here.
        thread = asyncio.ensure_future(asyncio.to_thread(function, *args, **given))
        LEAVING.reset(before)
        try:
            # Not given up with who waits: a task may be posted at this very moment.
            return await asyncio.shield(thread)
        except asyncio.CancelledError as cancelled:
            leaving.set()
            await asyncio.wait([thread])
            why = None if thread.cancelled() else thread.exception() or leaving.detached
            if why is None:
                raise
            cancelled.add_note(str(why))
            raise cancelled from why

    return run


attach = _awaited(face.attach)
connect = _awaited(face.connect)
evaluate = _awaited(face.evaluate)
fit = _awaited(face.fit)
predict = _awaited(face.predict)
predictions = _awaited(face.predictions)
quote = _awaited(face.quote)
