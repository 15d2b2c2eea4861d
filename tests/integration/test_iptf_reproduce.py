"""Running a program again on what it found the first time, whatever has changed since."""

import shutil
from pathlib import Path

import pytest

from tests.integration.iptf_world import World
from trainyard.content.cid import Cid

HEAD = "import os, sys\nimport tensorflow as tf\ngfile = tf.io.gfile\n"
APPENDS = """
with gfile.GFile("iptf://mfs/log", "a") as file:
    file.write(" two")
print(gfile.GFile("iptf://mfs/log").read())
"""
READS = """
print(gfile.glob(sys.argv[1] + "/x/*"), len(gfile.GFile(sys.argv[1] + "/x/1").read()))
"""
MOVES_AND_LISTS = """
print(gfile.listdir(sys.argv[1]), gfile.glob("iptf://mfs/in/*"))
gfile.rename("iptf://mfs/in/a.txt", "iptf://mfs/out/a.txt")
print(gfile.GFile("iptf://mfs/out/a.txt").read())
with gfile.GFile(f"iptf://mfs/out/by-{os.getpid()}", "w") as file:
    file.write("its own")
gfile.mkdir("iptf://mfs/out/made")
print(len(gfile.listdir("iptf://mfs/out")), gfile.isdir("iptf://mfs/only looked at"))
"""


@pytest.fixture
def here(tmp_path: Path) -> World:
    return World(tmp_path)


def _mfs(here: World, path: str) -> Path:
    """Where a path below iptf://mfs stands on disk."""
    target = here.folder / "store" / "mfs" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _run(here: World, script: str, *arguments: str) -> str:
    (here.folder / "train.py").write_text(HEAD + script)
    return here.told("python", "train.py", *arguments).stdout


def _again(here: World, run: int = 1) -> str:
    """What the program prints the second time; it must read the same."""
    done = here.iptf("reproduce", str(run))
    assert done.returncode == 0, done.stderr
    assert f"read the same CIDs as run {run}" in done.stderr
    return done.stdout


def test_a_file_that_was_appended_to_is_what_it_was(here: World) -> None:
    _ = here.content
    _mfs(here, "log").write_text("one")
    first = _run(here, APPENDS)
    _mfs(here, "log").write_text("something else")

    assert first == "one two\n"
    assert _again(here) == first
    assert _mfs(here, "log").read_text() == "something else"


def test_what_was_moved_and_listed_is_there_again(here: World) -> None:
    data = f"ipfs://{here.add({'x/1': b'1', 'y': b'2'})}"
    _mfs(here, "in/a.txt").write_text("A")
    _mfs(here, "in/never read").write_text("B")
    _mfs(here, "out/left").write_text("from before")
    _mfs(here, "only looked at").mkdir()
    first = _run(here, MOVES_AND_LISTS, data)

    assert first.splitlines()[1:] == ["A", "4 True"]
    reads = here.reflog(1)
    assert reads[data]["cid"] == data.removeprefix("ipfs://")
    assert reads["iptf://mfs/in/a.txt"]["own"] is False
    assert reads["iptf://mfs/out/a.txt"]["own"] is False
    assert {"iptf://mfs/in", "iptf://mfs/out"} <= set(reads)
    assert _again(here) == first


def test_what_is_pinned_outlives_a_collection_and_can_be_reproduced(here: World) -> None:
    data = f"ipfs://{here.add({'x/1': b'1' * 600_000, 'y': b'2'})}"
    here.content.unpin(Cid.parse(data.removeprefix("ipfs://")))
    _mfs(here, "log").write_text("one")
    first = _run(here, READS + APPENDS, data)
    _mfs(here, "log").unlink()
    shutil.rmtree(here.cache)

    assert "CIDs are pinned" in here.told("reflog", "--pin").stdout
    here.content.gc()

    assert _again(here) == first
    # Without the pins it is all gone, and that is said.
    for cid in here.store.pins():
        here.content.unpin(cid)
    here.content.gc()
    gone = here.iptf("reproduce", "1")
    assert gone.returncode == 3
    assert "Traceback" not in gone.stderr


def test_a_file_stays_in_the_log_when_the_gate_is_killed_under_its_reader(here: World) -> None:
    """The plugin holds all of the file, so that it has no reason to ask the next gate."""
    cid = here.add({"small": b"0123456789" * 100})
    here.python(
        f"""
        import glob, os, select, signal, time
        from pathlib import Path
        import tensorflow as tf
        from trainyard.iptf import enable
        from trainyard.iptf.client import GateClient, GateError

        enable()
        (gate,) = (
            int(path.split("/")[2])
            for path in glob.glob("/proc/[0-9]*/stat")
            if (words := open(path).read().rpartition(")")[2].split())[1] == str(os.getpid())
            and b"trainyard.iptf.gate" in open(path[:-4] + "cmdline", "rb").read()
        )
        file = tf.io.gfile.GFile("ipfs://{cid}/small", "rb")
        file.seek(100)
        file.read(10)
        ended = os.pidfd_open(gate)
        os.kill(gate, signal.SIGKILL)
        select.select([ended], [], [])
        while True:  # nobody tells when the next one is up
            try:
                GateClient(Path(os.environ["IPTF_SOCKET"])).__exit__()
                break
            except GateError:
                time.sleep(0.05)
        file.close()
        """
    )

    ((start, end),) = here.reflog(1)[f"ipfs://{cid}/small"]["ranges"]
    # GFile reads some way around what the program asks for.
    assert 0 < start <= 100
    assert end >= 110
