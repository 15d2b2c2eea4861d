"""Where a test may end the agent: an enum of moments, and the one at which it dies."""

import os
import signal
from enum import Enum, auto

from trainyard.chain.outbox import Fault

# NAME:COUNT, the moment and how many times it passes unharmed before it does not.
VARIABLE = "TRAINYARD_DIE_AT"


class Moment(Enum):
    """Moments of the agent itself; those of its outbox are `Fault`."""

    BEFORE_DECIDING = auto()
    BEFORE_WORK = auto()
    AFTER_WORK = auto()
    BEFORE_CARD = auto()
    AFTER_CARD = auto()


class Dying:
    """Kills this process as SIGKILL would at the moment that the environment names."""

    def __init__(self, told: str | None) -> None:
        name, _, count = (told or "").partition(":")
        self._name, self._left = name, int(count or 0)

    @classmethod
    def by_environment(cls) -> "Dying":
        return cls(os.environ.get(VARIABLE))

    def __call__(self, moment: Moment | Fault) -> None:
        if moment.name != self._name:
            return
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
