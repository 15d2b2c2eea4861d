"""An agent that is killed at every moment there is, and started again as systemd would.

`python -m tests.market.doomed DEATHS HOME PASSWORD_FILE`. Each life is a process of its own, forked
from one that has everything loaded, since there are many. DEATHS gets a line for each death.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import tests.quiet_web3  # noqa: F401
from trainyard.chain.keystore import address_in, find_password, open_keystore
from trainyard.chain.outbox import Fault
from worker_agent.agent import Agent
from worker_agent.faults import Moment
from worker_agent.locking import held_key
from worker_agent.logs import set_up_logs
from worker_agent.settings import Home, read_settings


def main() -> None:
    deaths, home, password = Path(sys.argv[1]), Home(Path(sys.argv[2])), Path(sys.argv[3])
    account = open_keystore(home.keystore, find_password(password))
    settings = read_settings(home)
    set_up_logs(home.log, shown=True)
    supervisor = _Supervisor()
    signal.signal(signal.SIGTERM, supervisor.end)

    def live() -> None:
        Agent(home, settings, account, reach=Dying(home, deaths)).run()

    with held_key(address_in(home.keystore), home):
        sys.exit(supervisor.run(live))


class _Supervisor:
    def __init__(self) -> None:
        self._child, self._is_ending = 0, False

    def run(self, live: Callable[[], None]) -> int:
        """Let it live until it ends by itself."""
        while True:
            self._child = os.fork()
            if self._child == 0:
                code = 1
                try:
                    live()
                    code = 0
                finally:
                    os._exit(code)
            status = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
            if status != -signal.SIGKILL or self._is_ending:
                return status

    def end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending = True
        os.kill(self._child, signal.SIGTERM)


class Dying:
    """Dies at each moment once for each thing that was sent and each piece of work that is done."""

    def __init__(self, home: Home, deaths: Path) -> None:
        self._home, self._deaths = home, deaths

    def __call__(self, moment: Moment | Fault) -> None:
        told = f"{moment.name} {self._sent()} {self._done() if isinstance(moment, Moment) else ''}"
        known = self._deaths.read_text().splitlines() if self._deaths.exists() else []
        if told.strip() in known:
            return
        with self._deaths.open("a") as file:
            file.write(told.strip() + "\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def _sent(self) -> int:
        with sqlite3.connect(f"file:{self._home.chain_store}?mode=ro", uri=True) as database:
            [count] = database.execute("SELECT count(*) FROM intents").fetchone()
        database.close()
        return int(count)

    def _done(self) -> str:
        tasks = self._home.folder / "tasks"
        names = ("fetched.json", "card.json", "run/ended", "claim.json", "answers")
        return ",".join(name for name in names if list(tasks.glob(f"*/{name}")))


if __name__ == "__main__":
    main()
