"""The `iptf` command where something is wrong, or is there already."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.iptf_world import World, remove_block
from trainyard.content.dag import decode_node
from trainyard.content.names import ContentPath
from trainyard.iptf.build import SOURCES
from trainyard.iptf.client import GateClient

TELLS_ITS_GATE = """
import os, sys
from pathlib import Path
from trainyard.iptf.client import GateClient
from trainyard.iptf.wire import Message, Op

socket, run = os.environ["IPTF_SOCKET"], os.environ["IPTF_RUN"]
with GateClient(Path(socket), int(run)) as gate:
    gate.ask(Message(Op.OPEN).text(sys.argv[1]))
print(socket, run)
sys.exit(7)
"""


@pytest.fixture
def here(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("IPTF_CACHE_BYTES", "many", "a valid integer"),
        ("IPTF_CACHE_BYTES", "0", "greater than 0"),
        ("TRAINYARD_TIMEOUT_S", "-1", "greater than 0"),
        ("TRAINYARD_KUBO", "nonsense", "write http://"),
    ],
)
@pytest.mark.parametrize("command", [["ls"], ["python", "-c", "1"]])
def test_a_bad_setting_is_told_in_a_line_with_its_name(
    tmp_path: Path, command: list[str], name: str, value: str, why: str
) -> None:
    done = World(tmp_path, more={name: value}).iptf(*command)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"iptf: {name}: ")
    assert why in line


def test_a_program_joins_the_gate_that_is_named(here: World, tmp_path: Path) -> None:
    cid = here.add({"a": b"1"})
    (tmp_path / "elsewhere").mkdir()
    with here.gate() as gate:
        there = World(tmp_path / "elsewhere", more={"IPTF_SOCKET": str(gate.socket)})
        done = there.iptf("python", "-c", TELLS_ITS_GATE, f"ipfs://{cid}/a")

        assert (done.returncode, done.stdout) == (7, f"{gate.socket} 1\n"), done.stderr
        with GateClient(gate.socket):
            pass  # it is still there
    assert list(here.reflog(1)) == [f"ipfs://{cid}/a"]
    (run,) = json.loads(here.told("reflog", "--runs", "--json").stdout)
    assert (run["command"][0], run["exit_code"]) == ("python", 7)
    assert not (there.folder / "store").exists()


def test_a_gate_that_is_named_and_dead_is_an_error(here: World) -> None:
    with here.gate() as gate:
        dead = str(gate.socket)
    world = World(here.folder, more={"IPTF_SOCKET": dead})
    done = world.iptf("python", "-c", "print('ran')")

    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert dead in line
    assert "unset IPTF_SOCKET" in line
    without = World(here.folder, more={"IPTF_SOCKET": ""})
    assert without.iptf("python", "-c", "print('ran')").stdout == "ran\n"


def test_a_copy_that_breaks_off_leaves_its_target_alone(here: World) -> None:
    cid = here.add({"large": os.urandom(5_000_000)})
    file = here.content.stat(ContentPath(cid, ("large",))).cid
    remove_block(here.store, decode_node(here.store.fetch(file)).links[-2].cid)
    (here.folder / "before").write_text("as it was")
    here.told("cp", str(here.folder / "before"), "iptf://mfs/target")

    broken = here.iptf("cp", f"ipfs://{cid}/large", "iptf://mfs/target")

    assert broken.returncode == 3, broken.stderr
    assert here.told("cat", "iptf://mfs/target").stdout == "as it was"
    assert os.listdir(here.folder / "store" / "mfs") == ["target"], "no part of it is left"


def test_the_plugin_is_built_ahead_of_its_first_use(here: World, tmp_path: Path) -> None:
    cached = {"XDG_CACHE_HOME": str(tmp_path / "user")}
    first = World(here.folder, more=cached).told("build").stdout.strip()
    again = World(here.folder, more={**cached, "CXX": "false"}).told("build").stdout.strip()

    assert first == again
    assert Path(first).parent == tmp_path / "user" / "trainyard" / "plugin"
    assert Path(first).read_bytes()[:4] == b"\x7fELF"
    without = {"XDG_CACHE_HOME": str(tmp_path / "other"), "CXX": "", "PATH": str(tmp_path)}
    failed = World(here.folder, more=without).iptf("build")
    assert failed.returncode == 1
    assert "apt-get install g++" in failed.stderr


def test_the_wheel_ships_what_the_plugin_is_built_from(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=SOURCES.parents[2],
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())

    needed = {f"trainyard/iptf/plugin/{path.name}" for path in SOURCES.iterdir()}
    assert needed | {"trainyard/iptf/hook/sitecustomize.py"} <= shipped
