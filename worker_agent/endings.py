"""How work for a task ended that failed: why, and whether it may be tried again."""

import json
import shutil
from pathlib import Path

from worker_agent.children import Done

# Less than that is left when nothing more can be written.
_NO_ROOM_BYTES = 64 << 10
# Whoever ran out of room has often made some by going, and has said so before.
_NO_ROOM = ("the disk is full", "no space left on device")


def reason_of(done: Done, folder: Path) -> str:
    """Why work failed, in its own words if it had any left; on a full disk nobody has."""
    if is_full(folder):
        return f"the disk of {folder} is full: make room, and it goes on by itself"
    try:
        return str(json.loads(done.said)["reason"])
    except (ValueError, KeyError, TypeError):
        return done.said or f"it ended with status {done.status}"


def is_full(folder: Path) -> bool:
    """Whether nothing more can be written there."""
    return shutil.disk_usage(folder).free < _NO_ROOM_BYTES


def is_permanent(done: Done, folder: Path) -> bool:
    """Whether it says that trying again is in vain; who says nothing was ended from outside.

    Nothing is in vain because a disk is full: there may be room again.
    """
    if is_full(folder) or any(word in done.said.lower() for word in _NO_ROOM):
        return False
    try:
        return json.loads(done.said)["is_permanent"] is True
    except (ValueError, KeyError, TypeError):
        return False
