"""How a runner comes to the peer plane."""

from pathlib import Path

from worker_agent.joining import card_port
from worker_agent.peers.identity import own_identity
from worker_agent.peers.plane import PeerPlane
from worker_agent.peers.requests import Answer
from worker_agent.progress import PEER
from worker_agent.runner.task import SOCKETS, Task


def open_plane(task: Task, answer: Answer) -> PeerPlane:
    """The plane on which the task's card says that this worker is."""
    peers = task.settings.peers
    return PeerPlane(
        own_identity(task.shelf.path(PEER), task.job.me),
        task.job.slot,
        folder=sockets_of(task),
        answer=answer,
        host=peers.host,
        port=0 if peers.relay else card_port(task.shelf),
        relay=peers.relay,
    )


def sockets_of(task: Task) -> Path:
    return task.shelf.path(SOCKETS)
