"""The worker of this machine in a run in rounds: kept running, and heard by whoever leads.

What it said since it was last started is kept here, so that whoever comes to lead learns of it, and
so that a word that was lost on the way is said again.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict

from trainyard.engine.confining import Confinement
from trainyard.engine.events import Event, Merged, Offered, Started, Stepped
from trainyard.engine.journal import write_whole
from trainyard.engine.worker import Job
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.runner.child import LostPeerError, Worker, WorkerFailedError

KEY = "key"
# Its first word, and then those of the last rounds.
_MOST_EVENTS = 12
_MOST_LOSSES = 10
_LONGEST_PAUSE_S = 10.0


class News(BaseModel):
    """What a worker said, each word with its number; `name` is another one at each start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    events: tuple[tuple[int, Event], ...] = ()


class OwnWorker:
    """Runs the worker, and runs it again when it is lost."""

    def __init__(
        self,
        sandbox: Confinement,
        hear: Callable[[Event], None],
        module: str = "trainyard.engine.worker",
    ) -> None:
        self._sandbox, self._hear_too, self._module = sandbox, hear, module
        self._name, self._said = "", 0
        self._events: list[tuple[int, Event]] = []
        self._news = asyncio.Event()
        self._anew = asyncio.Event()
        self._losses = 0

    def restart(self) -> None:
        """Begin anew, with what is told then."""
        self._anew.set()

    async def keep(self, job: Callable[[], Job], key: Path) -> None:
        """Run it until it has ended. `key` is what it signs with, the only key in its reach."""
        while not await self._run_once(job(), key):
            self._losses += 1
            if self._losses >= _MOST_LOSSES:
                raise PermanentError(
                    f"the worker was lost {self._losses} times without a part between; see "
                    f"{job().folder / 'worker.log'}"
                )
            await asyncio.sleep(min(0.25 * 2**self._losses, _LONGEST_PAUSE_S))

    async def news(self, name: str, since: int, wait_s: float = 0.0) -> News:
        """What it said from number `since` on; of another worker than that of `name`, all."""
        until = asyncio.get_running_loop().time() + wait_s
        while True:
            first = since if name == self._name else 0
            events = tuple(one for one in self._events if one[0] >= first)
            left_s = until - asyncio.get_running_loop().time()
            if events or left_s <= 0:
                return News(name=self._name, events=events)
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()

    async def first_state(self) -> str:
        """The state before the first round, as the worker computed it."""
        while True:
            for _, event in self._events:
                if isinstance(event, Started) and event.start is not None:
                    return event.start
            self._news.clear()
            await self._news.wait()

    def merged(self, number: int) -> Merged | None:
        """What it said of the merge of round `number`, if it did."""
        said = [event for _, event in self._events if isinstance(event, Merged)]
        return next((event for event in said if event.round == number), None)

    async def _run_once(self, job: Job, key: Path) -> bool:
        """Whether it came to its end."""
        self._name, self._said, self._events = secrets.token_hex(8), 0, []
        self._anew.clear()
        job.folder.mkdir(parents=True, exist_ok=True)
        # A copy: in the folder of the original lies the key of this worker's certificate.
        write_whole(job.folder / KEY, key.read_bytes(), mode=0o600)
        worker = Worker(job, self._sandbox, module=self._module)
        running = asyncio.create_task(worker.run(self._hear))
        asked = asyncio.create_task(self._anew.wait())
        try:
            await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                self._losses = 0
                return False
            running.result()
            return True
        except (LostPeerError, WorkerFailedError) as error:
            structlog.get_logger().warning("worker lost", reason=str(error), losses=self._losses)
            return False
        finally:
            for one in (running, asked):
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError, TrainyardError):
                    await one

    def _hear(self, event: Event) -> None:
        self._hear_too(event)
        if isinstance(event, Stepped):
            return
        if isinstance(event, Offered):
            self._losses = 0
        self._events.append((self._said, event))
        self._said += 1
        if len(self._events) > _MOST_EVENTS:
            del self._events[1]
        self._news.set()
