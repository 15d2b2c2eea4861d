"""A cluster whose workers are in sandboxes of their own computes what one process does."""

import asyncio
import sys
from pathlib import Path

from tests.agent.peer_sandboxes import inside
from tests.agent.peers_yard import peers
from tests.engine.nets import manifest_of, write_data
from trainyard.engine.journal import Journal
from trainyard.engine.worker import Job
from worker_agent.peers.inner import sync_ports

WORKERS = 2


def job(folder: Path, slot: int, peers: tuple[str, ...]) -> list[str]:
    """The command of one worker of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    given = Job(
        manifest=folder.parent / "manifest.json",
        folder=folder / "run",
        train=folder.parent,
        slot=slot,
        peers=peers,
    )
    given.folder.mkdir()
    path.write_text(given.model_dump_json())
    return [sys.executable, "-m", "trainyard.engine.worker", str(path)]


def states(folder: Path) -> list[str]:
    return [entry.state for entry in Journal.read(folder / "run").entries]


def test_training_through_tunnels_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    write_data(tmp_path)
    manifest = manifest_of("mlp", workers=WORKERS)
    (tmp_path / "manifest.json").write_bytes(manifest.canonical)
    addresses = tuple(f"127.0.0.1:{port}" for (port,) in sync_ports(WORKERS))

    async def go() -> None:
        commands = [job(tmp_path / str(slot), slot, addresses) for slot in range(WORKERS)]
        async with (
            peers(tmp_path, WORKERS) as planes,
            inside(tmp_path / "0", 0, commands[0]) as first,
            inside(tmp_path / "1", 1, commands[1]) as second,
        ):
            said = await asyncio.gather(first.communicate(), second.communicate())
            assert (first.returncode, second.returncode) == (0, 0), said
            assert all(not one.plane.counts["not let in"] for one in planes)
        alone = await asyncio.create_subprocess_exec(*job(tmp_path / "alone", 0, ()))
        assert await alone.wait() == 0

    asyncio.run(go())

    found = states(tmp_path / "alone")
    assert len(found) == manifest.plan.segments + 1
    assert states(tmp_path / "0") == states(tmp_path / "1") == found
