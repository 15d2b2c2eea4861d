"""The functions of `trainyard` for an event loop: `history = await trainyard.aio.fit(model, x, y)`.

Each runs in a thread of its own. Who cancels one detaches from its task, which goes on; `attach`
comes back. A `Market` is for one of them at a time.
"""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from trainyard import face
from trainyard.sdk.following import LEAVING

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _awaited(
    function: Callable[_Given, _Result],
) -> Callable[_Given, Coroutine[Any, Any, _Result]]:
    @functools.wraps(function)
    async def run(*args: _Given.args, **given: _Given.kwargs) -> _Result:
        leaving = threading.Event()
        before = LEAVING.set(leaving)
        try:
            # The thread has a copy of the context, and so of what is set here.
            return await asyncio.to_thread(function, *args, **given)
        finally:
            leaving.set()
            LEAVING.reset(before)

    return run


attach = _awaited(face.attach)
connect = _awaited(face.connect)
evaluate = _awaited(face.evaluate)
fit = _awaited(face.fit)
predict = _awaited(face.predict)
predictions = _awaited(face.predictions)
quote = _awaited(face.quote)
