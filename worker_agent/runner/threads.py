"""Work in threads that is not left alone when whoever waits for it is told to end."""

import asyncio
from collections.abc import Callable
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
