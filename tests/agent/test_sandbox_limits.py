"""What a task is told when a limit ended it, and where limits can be set."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from worker_agent.cgroups import Group, Tree, find_tree
from worker_agent.limits import Ending, Limits, explain
from worker_agent.watching import size_of

MEMORY = "the task needed more than 4 GiB of memory"
PROCESSES = "the task started more than 1024 processes and threads"
DISK = "the task wrote more than 20 GiB to disk"


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (Ending(0), None),
        (Ending(0, said="MemoryError, which it got over"), None),
        (Ending(1, said="ValueError: a mistake"), None),
        # By whom, nobody knows.
        (Ending(128 + signal.SIGKILL), None),
        (Ending(128 + signal.SIGKILL, out_of_memory=True), MEMORY),
        (Ending(128 + signal.SIGABRT, said="what():  std::bad_alloc"), MEMORY),
        (Ending(1, said="MemoryError"), MEMORY),
        (Ending(1, out_of_processes=True), PROCESSES),
        (Ending(1, said="RuntimeError: can't start new thread"), PROCESSES),
        (Ending(-signal.SIGXCPU), "the task used more than 60 s of processor time"),
        (Ending(128 + signal.SIGXFSZ), DISK),
        (Ending(1, said="OSError: [Errno 27] File too large"), DISK),
        (Ending(137, breach="the task ran for more than 5 s"), "the task ran for more than 5 s"),
    ],
)
def test_ending_is_told_by_the_limit_that_made_it(ending: Ending, sentence: str | None) -> None:
    assert explain(ending, Limits(cpu_s=60)) == sentence


def test_size_counts_each_file_once_and_follows_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(10_000))
    once = size_of(tmp_path)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert size_of(tmp_path) == once

    (tmp_path / "link").symlink_to("/usr")
    assert size_of(tmp_path) == once + 4096
    assert size_of(tmp_path / "nowhere") == 0


class TestTree:
    """Files as the kernel lays them out: this machine may have the other version."""

    def lay_out(self, folder: Path, *, handed_on: str) -> Path:
        slices = folder / "fs" / "user.slice" / "app.slice"
        own = slices / "agent.scope"
        own.mkdir(parents=True)
        for place in (own, slices, slices.parent, folder / "fs"):
            (place / "cgroup.subtree_control").write_text("")
            (place / "cgroup.procs").write_text("")
        (slices / "cgroup.subtree_control").write_text(handed_on)
        (folder / "cgroup").write_text("0::/user.slice/app.slice/agent.scope\n")
        (folder / "mountinfo").write_text(
            f"41 31 0:38 / {folder}/fs rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
        )
        return slices

    def test_version_2_is_used_where_both_controllers_are_handed_on(self, tmp_path: Path) -> None:
        slices = self.lay_out(tmp_path, handed_on="cpu memory pids\n")
        (slices / "agent.scope" / "cpu.max").write_text("max 100000\n")

        tree = find_tree(tmp_path)

        assert (tree.version, tree.places) == (2, [slices])
        assert set(tree.parents) == {"cpu", "memory", "pids"}

    def test_version_2_without_cpu_limits_the_rest(self, tmp_path: Path) -> None:
        self.lay_out(tmp_path, handed_on="memory pids\n")

        tree = find_tree(tmp_path)

        assert set(tree.parents) == {"memory", "pids"}

    def test_version_2_of_a_kernel_without_quotas_limits_the_rest(self, tmp_path: Path) -> None:
        self.lay_out(tmp_path, handed_on="cpu memory pids\n")

        assert set(find_tree(tmp_path).parents) == {"memory", "pids"}

    def test_version_2_with_one_of_them_is_not_used(self, tmp_path: Path) -> None:
        self.lay_out(tmp_path, handed_on="memory\n")

        assert not find_tree(tmp_path).parents

    def test_mount_of_a_part_of_version_1(self, tmp_path: Path) -> None:
        """As in a container."""
        (tmp_path / "memory" / "below").mkdir(parents=True)
        (tmp_path / "cgroup").write_text("4:memory:/docker/abc/below\n8:pids:/elsewhere\n")
        (tmp_path / "mountinfo").write_text(
            f"35 31 0:32 /docker/abc {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
            f"39 31 0:36 /docker/abc {tmp_path}/pids rw - cgroup cgroup rw,pids\n"
        )

        assert find_tree(tmp_path).parents == {"memory": tmp_path / "memory" / "below"}

    @pytest.mark.parametrize("has_quota", [True, False])
    def test_version_1_holds_to_cores_only_where_there_are_quotas(
        self, tmp_path: Path, has_quota: bool
    ) -> None:
        (tmp_path / "cpu").mkdir()
        if has_quota:
            (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
        (tmp_path / "cgroup").write_text("3:cpu,cpuacct:/\n")
        (tmp_path / "mountinfo").write_text(
            f"35 31 0:32 / {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        )

        assert ("cpu" in find_tree(tmp_path).parents) is has_quota


@pytest.mark.parametrize(("number", "is_told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_cores_that_cannot_be_limited_are_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_told: bool
) -> None:
    """But where less is given to what is above, that is the limit."""
    write = Path.write_text

    def fail(path: Path, text: str) -> int:
        if path.name == "cpu.cfs_quota_us":
            raise OSError(number, os.strerror(number))
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="error") if is_told else nullcontext():
        Group(Tree(1, {"cpu": tmp_path}), 1 << 30, 64, 1.5)


def test_cores_are_a_part_of_each_period(tmp_path: Path) -> None:
    """As version 2 wants it said; what this machine has, the next test asks."""
    Group(Tree(2, {"cpu": tmp_path}), 1 << 30, 64, 1.5)

    [folder] = tmp_path.iterdir()
    assert (folder / "cpu.max").read_text() == "150000 100000"


_BURNS = """
import os, time
pid = os.fork()
while time.process_time() < 0.3:
    pass
if pid:
    os.waitpid(pid, 0)
"""


@pytest.mark.skipif("cpu" not in find_tree().parents, reason="no cgroup for cpu may be made here")
def test_kernel_holds_all_processes_together_to_their_cores() -> None:
    def burnt(cores: float | None) -> int:
        group = Group(find_tree(), 1 << 30, 64, cores)
        try:
            command = [sys.executable, "-S", "-c", _BURNS]
            subprocess.run(command, check=True, preexec_fn=group.join)
            return group.throttled
        finally:
            group.remove()

    assert burnt(None) == 0
    assert burnt(0.3) > 0


_IN_A_SERVICE = """
import json, os, sys
from pathlib import Path
from worker_agent.cgroups import make_room
place, controller = Path(sys.argv[1]), sys.argv[2]
(place / "cgroup.procs").write_text("0")
why = make_room(controllers=[controller])
task = place / "trainyard-task"
if why is None:
    task.mkdir()
    (task / "cgroup.procs").write_text("0")
print(json.dumps({
    "why": why,
    "pid": os.getpid(),
    "handed_on": (place / "cgroup.subtree_control").read_text().split(),
    "task": (task / "cgroup.procs").read_text().split() if why is None else None,
}))
"""


def _mount_of_version_2() -> Path | None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return Path(line.split()[4])
    return None


class TestService:
    """The kernel's own groups of version 2, with whichever controller is free on this machine."""

    @pytest.fixture
    def controller(self) -> Iterator[str]:
        mount = _mount_of_version_2()
        if mount is None or not (mount / "cgroup.controllers").exists():
            pytest.skip("no control groups of version 2 are mounted here")
        controllers = (mount / "cgroup.controllers").read_text().split()
        before = (mount / "cgroup.subtree_control").read_text().split()
        try:
            one = next(iter(controllers))
            (mount / "cgroup.subtree_control").write_text(f"+{one}")
        except (OSError, StopIteration):
            pytest.skip("control groups of version 2 may not be divided here")
        yield one
        if one not in before:
            (mount / "cgroup.subtree_control").write_text(f"-{one}")

    @pytest.fixture
    def place(self, controller: str) -> Iterator[Path]:
        mount = _mount_of_version_2()
        assert mount is not None
        place = mount / "trainyard-test"
        place.mkdir()
        yield place
        for folder in (place / "trainyard-agent", place / "trainyard-task", place):
            with suppress(FileNotFoundError):
                folder.rmdir()

    def run(self, place: Path, controller: str) -> dict[str, object]:
        command = [sys.executable, "-c", _IN_A_SERVICE, str(place), controller]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        found: dict[str, object] = json.loads(ran.stdout)
        return found

    def test_agent_moves_down_so_that_tasks_get_groups(self, place: Path, controller: str) -> None:
        found = self.run(place, controller)

        assert (found["why"], found["handed_on"]) == (None, [controller])
        assert found["task"] == [str(found["pid"])]

    def test_agent_beside_others_leaves_them_where_they_are(
        self, place: Path, controller: str
    ) -> None:
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as other:
            (place / "cgroup.procs").write_text(str(other.pid))
            found = self.run(place, controller)
            stays = (place / "cgroup.procs").read_text().split()
            other.kill()

        assert found["why"] == f"{place} has other processes than the agent in it"
        assert stays == [str(other.pid)]

    def test_group_that_is_handed_on_without_controllers_is_said(self, place: Path) -> None:
        found = self.run(place, "nothing")

        assert found["why"] == f"{place} is not handed to this user with nothing"
