"""Being told of new blocks, only so as to look sooner: `python -m worker_agent.waking`.

The listener is a process of its own, which has no key and can do nothing but write a letter to the
agent. Whatever becomes of it, the agent looks as often as it would without.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable

import structlog

from trainyard.content.lifeline import dying_with_parent
from worker_agent.children import passed_environment

_AGAIN_S = 60.0
_MANY = 4096


class Waker:
    """The agent's end. Without an address it does nothing."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._listener: subprocess.Popen[bytes] | None = None
        self._again_at = 0.0

    @property
    def handles(self) -> tuple[int, ...]:
        """What can be read when a block came, or the listener has ended."""
        if self._listener is None or self._listener.stdout is None:
            return ()
        return (self._listener.stdout.fileno(),)

    def see_to(self) -> None:
        """Start the listener, if there is to be one and there is none."""
        if self._address is None or self._listener or time.monotonic() < self._again_at:
            return
        self._again_at = time.monotonic() + _AGAIN_S
        self._listener = subprocess.Popen(
            [sys.executable, "-m", "worker_agent.waking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=passed_environment(),
            preexec_fn=dying_with_parent(),
            start_new_session=True,
        )
        assert self._listener.stdin is not None
        assert self._listener.stdout is not None
        os.set_blocking(self._listener.stdout.fileno(), False)
        # Not on the command line: providers put their customers' keys into addresses.
        with contextlib.suppress(BrokenPipeError):
            self._listener.stdin.write(self._address.encode() + b"\n")
            self._listener.stdin.close()

    def read(self, ready: Iterable[int]) -> None:
        """Take the letters; where there are none and never will be, let go."""
        for handle in set(self.handles) & set(ready):
            if not os.read(handle, _MANY):
                structlog.get_logger().warning("the listener for new blocks has ended")
                self.close()

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.kill()
            listener.wait()
            if listener.stdout is not None:
                listener.stdout.close()


if __name__ == "__main__":
    from worker_agent.listening import listen

    listen(sys.stdin.readline().strip(), sys.stdout.fileno())
