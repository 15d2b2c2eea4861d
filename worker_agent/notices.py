"""What requesters are told of tasks that were given up, as it stands in the agent's profile.

Only the last few are kept, and none is ever changed: each change of the profile costs a fee.
"""

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from trainyard.engine.journal import write_whole
from trainyard.protocol.profiles import MOST_NOTICES, Notice
from worker_agent.settings import Home

_ADAPTER = TypeAdapter(tuple[Notice, ...])


class Notices:
    def __init__(self, home: Home) -> None:
        self._folder, self._path = home.folder.absolute(), home.notices
        self.all = _read(self._path)[-MOST_NOTICES:]

    def add(self, task: int, reason: str) -> None:
        """Keep why a task was given up, if that was not said before."""
        if any(one.task == task for one in self.all):
            return
        # Strangers need not know what is where on this machine.
        notice = Notice.of(task, reason.replace(str(self._folder), "…"))
        kept = (*self.all, notice)[-MOST_NOTICES:]
        write_whole(self._path, json.dumps([one.model_dump() for one in kept]).encode())
        self.all = kept


def _read(path: Path) -> tuple[Notice, ...]:
    """What is kept there; a damaged file is as good as none."""
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return ()
