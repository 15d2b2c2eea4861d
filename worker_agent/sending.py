"""Sends what was decided, once each; what the chain took back or refused is decided anew."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from trainyard.chain.errors import RevertedError
from trainyard.chain.journal import Entry, State
from trainyard.chain.outbox import Outbox
from worker_agent.actions import Hurry, Send
from worker_agent.postings import plain

# A call that was refused may be right a little later, or never.
_AGAIN_S = 5.0
_MOST_ATTEMPTS = 8


@dataclass(slots=True)
class Sender:
    outbox: Outbox
    _refused_at: dict[str, float] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)
    # Until when what was decided last has to be mined, or what is under way.
    _deadlines: dict[str, int] = field(default_factory=dict)
    # What is not tried any more, by its key, and why the last attempt failed.
    given_up: dict[str, str] = field(default_factory=dict)

    def send(self, action: Send) -> None:
        """Send it if that was not done yet; a transaction that reverted is sent anew, later."""
        key = self._key(action)
        if action.by is not None:
            self._deadlines |= dict.fromkeys(self._names(action), action.by)
        if key is None or time.monotonic() < self._refused_at.get(action.key, 0.0):
            return
        log = structlog.get_logger().bind(action=action.key)
        try:
            entry = self.outbox.submit(key, action.call)
        except RevertedError as error:
            self._refused_at[action.key] = time.monotonic() + _AGAIN_S
            if self._told.get(action.key) != str(error):
                self._told[action.key] = str(error)
                log.info("refused", reason=str(error))
            return
        log.info("sent", nonce=entry.nonce, transaction=f"0x{entry.newest.hash.hex()}")

    def hurry(self, action: Hurry) -> None:
        """See to it that what was sent is mined in time, though it is not decided upon again."""
        self._deadlines[action.key] = action.by

    def step(self, is_void: Callable[[str], bool] = lambda key: False) -> None:
        """See to what was sent, the sooner the nearer its deadline is.

        What nobody decides upon any more is in no hurry, and what `is_void` must not be mined.
        """
        deadlines, self._deadlines = self._deadlines, {}
        self.outbox.step(deadlines, is_void)

    @staticmethod
    def _names(action: Send) -> list[str]:
        """The keys of all attempts."""
        more = (f"{action.key}#{attempt + 1}" for attempt in range(1, _MOST_ATTEMPTS))
        return [action.key, *more]

    def _is_under_way(self, key: str) -> bool:
        """Whether an agent of before keys named their task has sent it, and nobody knows more."""
        try:
            return self.outbox.entry(key).state is State.PENDING
        except LookupError:
            return False

    def _key(self, action: Send) -> str | None:
        """The key of the next attempt; None if one is under way or done, or there were many."""
        why = ""
        if self._is_under_way(plain(action.key)):
            return None
        for name in self._names(action):
            try:
                entry = self.outbox.entry(name)
            except LookupError:
                return name
            if not _has_failed(entry, is_final=action.adds_up):
                return None
            why = entry.why
        if action.key not in self.given_up:
            self.given_up[action.key] = f"{_MOST_ATTEMPTS} attempts failed, the last one: {why}"
            structlog.get_logger().error(
                "given up", action=action.key, attempts=_MOST_ATTEMPTS, reason=why
            )
        return None


def _has_failed(entry: Entry, *, is_final: bool) -> bool:
    """Whether another may be sent; with `is_final`, not before no reorg can revive this one."""
    is_reverted = entry.state is State.MINED and bool(entry.why) and not is_final
    return is_reverted or entry.state in (State.REVERTED, State.DISPLACED)
