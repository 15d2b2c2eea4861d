"""Showing what we have to those who ask: `python -m worker_agent.showing HOME`.

A process of its own, without the key: a gateway over the agent's store, and whoever puts the
profile up on boards. It ends with the agent, however that ends, and is started again if it fails.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

import structlog

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.logs import last_line
from worker_agent.children import passed_environment
from worker_agent.settings import ContentPlaces, Home

# After a failure it is begun again later, and later still: another program may have the port.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
_WELL_S = 120.0
_MANY = 4096


class Showcase:
    """The agent's end. Where nothing is to be shown it does nothing."""

    def __init__(self, home: Home, places: ContentPlaces) -> None:
        self._home = home
        self._is_wanted = places.listen is not None or bool(places.boards)
        self._shower: subprocess.Popen[bytes] | None = None
        self._began = self._again_at = 0.0
        self._failures = 0

    @property
    def handles(self) -> tuple[int, ...]:
        """What can be read when the process has ended."""
        if self._shower is None or self._shower.stdout is None:
            return ()
        return (self._shower.stdout.fileno(),)

    def see_to(self) -> None:
        """Start the process, if there is to be one and there is none."""
        if not self._is_wanted or self._shower or time.monotonic() < self._again_at:
            return
        self._began = time.monotonic()
        try:
            self._shower = self._started()
        except OSError as error:
            # Such as a full disk, which must not end the agent.
            self._fail(str(error))

    def _started(self) -> "subprocess.Popen[bytes]":
        folder = str(self._home.folder.absolute())
        with self._home.gateway_log.open("wb") as log:
            shower = subprocess.Popen(
                [sys.executable, "-m", "worker_agent.showing", folder],
                stdin=subprocess.DEVNULL,
                # Nothing is said there; it is at its end when the process is.
                stdout=subprocess.PIPE,
                stderr=log,
                env=passed_environment(),
                preexec_fn=dying_with_parent(),
                start_new_session=True,
            )
        assert shower.stdout is not None
        os.set_blocking(shower.stdout.fileno(), False)
        return shower

    def read(self, ready: Iterable[int]) -> None:
        """Where the process has ended, say so and let go; it is started anew a little later."""
        for handle in set(self.handles) & set(ready):
            if os.read(handle, _MANY):
                continue
            self.close()
            self._fail(last_line(self._home.gateway_log) or "it was killed")

    def look_again(self) -> None:
        """There is another profile now. One that has not begun to listen is started anew."""
        if self._shower is not None:
            self._shower.send_signal(signal.SIGHUP)

    def close(self) -> None:
        shower, self._shower = self._shower, None
        if shower is not None:
            shower.kill()
            shower.wait()
            if shower.stdout is not None:
                shower.stdout.close()

    def _fail(self, reason: str) -> None:
        is_well = time.monotonic() - self._began > _WELL_S
        self._failures = 0 if is_well else min(self._failures + 1, 10)
        wait_s = min(_FIRST_WAIT_S * 2**self._failures, _LONGEST_WAIT_S)
        self._again_at = time.monotonic() + wait_s
        structlog.get_logger().error("nothing is served", reason=reason, again_in_s=wait_s)


if __name__ == "__main__":
    from worker_agent.exhibiting import exhibit

    exhibit(sys.argv[1])
