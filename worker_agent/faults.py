"""Where a test may end the agent: an enum of moments, and the one at which it dies."""

import os
import signal
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A runner has no business with the chain, nor time to load what speaks to it.
    from trainyard.chain.outbox import Fault

# NAME:COUNT:SIGNAL, the moment, how many times it passes unharmed before it does not, and what then
# comes: SIGKILL if nothing is said.
VARIABLE = "TRAINYARD_DIE_AT"


class Moment(Enum):
    """Moments of the agent itself; those of its outbox are `Fault`."""

    BEFORE_DECIDING = auto()
    BEFORE_WORK = auto()
    AFTER_WORK = auto()
    BEFORE_CARD = auto()
    AFTER_CARD = auto()


class Stage(Enum):
    """Moments of a runner, at which its agent is signalled."""

    # It is about to wait for its peers, has one more state, or has all of them.
    WAITING = auto()
    STATE = auto()
    ENDED = auto()


class Dying:
    """Signals this process at the moment that the environment names."""

    def __init__(self, told: str | None) -> None:
        name, count, sent = f"{told or ''}::".split(":")[:3]
        self._name, self._left = name, int(count or 0)
        self._signal = signal.Signals[sent or "SIGKILL"]

    @classmethod
    def by_environment(cls) -> "Dying":
        return cls(os.environ.get(VARIABLE))

    def __call__(self, moment: "Moment | Fault | Stage") -> None:
        if moment.name != self._name:
            return
        if self._left == 0:
            is_runner = isinstance(moment, Stage)
            os.kill(os.getppid() if is_runner else os.getpid(), self._signal)
            if is_runner and self._signal is signal.SIGKILL:
                # It would soon end with its agent anyway, but not at this moment.
                os.kill(os.getpid(), self._signal)
        self._left -= 1
