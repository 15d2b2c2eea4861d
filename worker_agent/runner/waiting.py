"""Waiting for several things at once, such that nothing of it is left alone."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


async def to_its_end(function: Callable[..., _T], *arguments: Any) -> _T:
    """Call it in a thread. Who is cancelled meanwhile waits for it: it may be writing."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def first_of(*roles: Coroutine[Any, Any, bool]) -> bool:
    """What the first of them comes to that comes to something; the others are ended."""
    tasks = [asyncio.create_task(one) for one in roles]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(one for one in tasks if one.done()).result()
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
