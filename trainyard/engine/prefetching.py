"""Reading the next batches while the last one is computed with."""

from collections.abc import Callable, Generator, Iterable
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


def read_ahead(
    read: Callable[[Asked], Given], asked: Iterable[Asked], depth: int
) -> Generator[Given, None, None]:
    """What `read` gives for each of `asked`, in order, with up to `depth` of them read ahead.

    One thread reads. It ends with the iterator: exhausted, closed, or dropped. An error comes
    after all that was read before it.
    """
    reader = _Reader(read, asked, depth)
    reader.thread.start()
    try:
        while (item := reader.items.get()) is not None:
            if isinstance(item, _Failure):
                raise item.error
            reader.room.release()
            yield item.value
    finally:
        reader.stopped = True
        reader.room.release()
        reader.thread.join()


class _Given(Generic[Given]):
    __slots__ = ("value",)

    def __init__(self, value: Given) -> None:
        self.value = value


class _Failure:
    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Reader(Generic[Asked, Given]):
    def __init__(self, read: Callable[[Asked], Given], asked: Iterable[Asked], depth: int) -> None:
        self._read, self._asked = read, asked
        self.items: SimpleQueue[_Given[Given] | _Failure | None] = SimpleQueue()
        self.room = Semaphore(depth)
        self.stopped = False
        # No reason for a process to stay: whoever forgot the iterator wants nothing of it.
        self.thread = Thread(target=self._run, name="trainyard-prefetch", daemon=True)

    def _run(self) -> None:
        try:
            for asked in self._asked:
                self.room.acquire()
                if self.stopped:
                    return
                self.items.put(_Given(self._read(asked)))
        except BaseException as error:  # raised again where it is waited for
            self.items.put(_Failure(error))
        else:
            self.items.put(None)
