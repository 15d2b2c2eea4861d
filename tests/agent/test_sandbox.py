"""Programs that want more than they are given, in a real sandbox: each of them is stopped."""

import errno
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.sandboxes import groups_of, probe, processes_with
from worker_agent.cgroups import Tree
from worker_agent.finding import SandboxError, SandboxReport
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox, find_sandbox

REPORT = find_sandbox()
BARE = replace(REPORT, tree=Tree(1, {}))
LIMITS = Limits(memory_bytes=200 << 20, disk_bytes=1 << 20, processes=20, scratch_bytes=1 << 20)
SECRET = "a-word-that-nobody-else-knows"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    one = Sandbox(LIMITS, REPORT)
    yield one
    assert groups_of(one) == []


@pytest.fixture
def marker() -> Iterator[str]:
    """A word by which the processes of a test are known, and none of which outlives it."""
    word = f"probe-{uuid.uuid4()}"
    yield word
    assert processes_with(word) == []


def test_task_has_what_it_needs(sandbox: Sandbox, tmp_path: Path) -> None:
    """Else all that follows would be stopped for the wrong reason."""
    given, own = tmp_path / "given", tmp_path / "own"
    given.write_text("data")
    own.mkdir()
    program = """
import os, pathlib, socket, sys, numpy, trainyard.engine.worker
assert pathlib.Path(sys.argv[1]).read_text() == "data"
pathlib.Path(sys.argv[2], "result").write_text("done")
pathlib.Path("/tmp/scratch").write_text("x")
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
assert os.getuid() == 65534 and socket.gethostname() == "trainyard"
print(os.cpu_count(), trainyard.__file__)
"""
    found = probe(sandbox, program, str(given), str(own), readable=[given], writable=[own])

    assert found.log == ""
    assert found.output.split()[0] == str(os.cpu_count())
    assert (found.status, found.reason) == (0, None)
    assert (own / "result").read_text() == "done"
    # Whoever runs the agent can read and remove it.
    assert (own / "result").stat().st_uid == os.getuid()


def test_no_key_no_home_no_environment(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_PASSWORD", SECRET)
    keystore = tmp_path / "home" / "keystore.json"
    own = tmp_path / "home" / "tasks" / "7"
    own.mkdir(parents=True)
    keystore.write_text(SECRET)
    program = """
import glob, os, sys
try:
    print("keystore", open(sys.argv[1]).read())
except OSError as error:
    print(type(error).__name__)
print("beside", os.listdir(os.path.dirname(sys.argv[1])))
for name in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
    print(name, open(name).read())
for name in ("/etc/shadow", "/etc/passwd", "/etc/hosts", "/var", "/run", "/home", "/mnt", "/srv"):
    assert not os.path.exists(name), name
assert not [key for key in os.environ if "PASSWORD" in key or "SSH" in key]
print("home", *glob.glob(sys.argv[2] + "/*") + glob.glob(sys.argv[2] + "/.*"))
"""
    found = probe(sandbox, program, str(keystore), str(Path.home()), writable=[own])

    assert found.log == ""
    assert found.output.startswith("FileNotFoundError\nbeside ['tasks']\n")
    assert SECRET not in found.output
    seen = found.output.partition("home ")[2].split()
    # Only names on the way to the interpreter, if that is in there.
    shown = [Path(sys.base_prefix), Path(sys.prefix).resolve(), Path(sys.prefix), ROOT, own]
    assert all(any(one.is_relative_to(name) for one in shown) for name in seen)


def test_neither_loopback_nor_sockets_of_the_host_are_reached(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    name = f"\0trainyard-{uuid.uuid4()}"
    path = str(tmp_path / "socket")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        abstract.bind(name)
        abstract.listen()
        named.bind(path)
        named.listen()
        # From here all three answer.
        socket.create_connection(server.getsockname()).close()
        for address in (name, path):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
        program = """
import socket, sys
for family, address in (
    (socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))),
    (socket.AF_UNIX, "\\0" + sys.argv[2]),
    (socket.AF_UNIX, sys.argv[3]),
):
    try:
        socket.socket(family).connect(address)
        print("reached")
    except OSError as error:
        print(type(error).__name__)
print(*(name for _, name in socket.if_nameindex()))
"""
        port = str(server.getsockname()[1])
        found = probe(sandbox, program, port, name[1:], path)

    assert found.output.split() == [
        "ConnectionRefusedError",
        "ConnectionRefusedError",
        "FileNotFoundError",
        "lo",
    ]


def test_sockets_are_of_few_families(sandbox: Sandbox) -> None:
    """Those to the host of a virtual machine and to the kernel's ciphers pass a network's walls."""
    program = """
import socket
for name in ("AF_VSOCK", "AF_ALG", "AF_PACKET", "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"):
    family, kind = getattr(socket, name), socket.SOCK_RAW
    if name in ("AF_VSOCK", "AF_UNIX", "AF_INET", "AF_INET6"):
        kind = socket.SOCK_STREAM
    elif name == "AF_ALG":
        kind = socket.SOCK_SEQPACKET
    try:
        socket.socket(family, kind).close()
        print(name)
    except OSError as error:
        print(error.errno)
for one in socket.socketpair():
    one.close()
"""
    found = probe(sandbox, program)

    refused = [str(errno.EAFNOSUPPORT)] * 3
    assert found.output.split() == [*refused, "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"]
    assert found.status == 0


FORKS = """
import os, signal
started = 0
try:
    while started < 500:
        if os.fork() == 0:
            signal.pause()
        started += 1
except OSError:
    print(started)
    raise
"""


def test_forks_come_to_an_end(sandbox: Sandbox, marker: str) -> None:
    found = probe(sandbox, FORKS, marker)

    assert 10 <= int(found.output) <= LIMITS.processes
    assert found.reason == "the task started more than 20 processes and threads"
    # And we can still start what we like.
    assert subprocess.run(["true"]).returncode == 0


AS_USER = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.agent.sandboxes import probe
from worker_agent.limits import Limits
from worker_agent.sandbox import Sandbox, find_sandbox
report = find_sandbox()
assert not report.tree.parents, report
print(report.processes)
found = probe(Sandbox(Limits(processes=20), report), sys.argv[2], sys.argv[3])
print(found.output.strip(), found.reason)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="covered by test_forks_come_to_an_end: not root here")
def test_forks_of_a_user_without_groups_come_to_an_end(marker: str) -> None:
    """With an interpreter that such a user can read; limits are counted for the sandbox alone."""
    folder = Path(tempfile.mkdtemp(prefix="trainyard-test-"))
    try:
        folder.chmod(0o755)
        for name in ("trainyard", "worker_agent", "tests/agent"):
            shutil.copytree(ROOT / name, folder / name)
        tried = subprocess.run(
            ["/usr/bin/python3", "-c", AS_USER, str(folder), FORKS, marker],
            capture_output=True,
            text=True,
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
            timeout=60,
        )
    finally:
        shutil.rmtree(folder)

    assert tried.stderr == ""
    assert tried.stdout.splitlines()[0] == "rlimits"
    count, _, reason = tried.stdout.splitlines()[1].partition(" ")
    assert 10 <= int(count) <= 20
    assert reason == "the task started more than 20 processes and threads"


MEMORY = """
import os, signal
for _ in range(3):
    if os.fork() == 0:
        break
held = bytearray(100 << 20)
print("held", flush=True)
signal.pause() if os.getppid() != 1 else os.wait()
"""


@pytest.mark.skipif(not REPORT.groups_memory, reason="no cgroup may be made here")
def test_memory_of_all_processes_is_limited_by_the_kernel(sandbox: Sandbox, marker: str) -> None:
    found = probe(sandbox, "held = bytearray(300 << 20)", marker)

    assert found.status == 128 + signal.SIGKILL
    assert found.reason == "the task needed more than 200 MiB of memory"


def test_memory_without_groups_is_seen_by_who_looks(marker: str) -> None:
    with Sandbox(LIMITS, BARE).running([sys.executable, "-c", MEMORY, marker]) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == b"held\n"

        assert process.breach() == "the task needed more than 200 MiB of memory"


def test_memory_of_one_process_without_groups_has_an_end(marker: str) -> None:
    found = probe(Sandbox(LIMITS, BARE), "held = bytearray(8 << 30)", marker)

    assert found.status == 1
    assert found.reason == "the task needed more than 200 MiB of memory"


@pytest.mark.parametrize("call", ["os.memfd_create('x')", "open('/dev/shm/x', 'wb')"])
def test_no_memory_that_belongs_to_no_process(sandbox: Sandbox, call: str) -> None:
    found = probe(sandbox, f"import os; {call}")

    assert found.log.strip().splitlines()[-1].startswith(("PermissionError", "OSError: [Errno 30]"))


def test_scratch_space_is_small(sandbox: Sandbox) -> None:
    program = "for name in 'ab': open('/tmp/' + name, 'wb').write(bytes(900_000))"

    found = probe(sandbox, program)

    assert "No space left on device" in found.log
    assert found.reason == "the task filled its 1 MiB of temporary files, or the disk is full"


DISK = {
    "many files": """
for number in range(20):
    open(f"{folder}/{number}", "wb").write(bytes(100_000))
""",
    "empty files": """
for number in range(400):
    open(f"{folder}/{number}", "wb").close()
""",
    "file without a name": """
kept = []
for number in range(20):
    kept.append(open(f"{folder}/x", "wb"))
    kept[-1].write(bytes(100_000))
    kept[-1].flush()
    os.unlink(f"{folder}/x")
""",
    "deep folder": """
os.chdir(folder)
for number in range(100):
    os.mkdir("d")
    os.chdir("d")
""",
}


@pytest.mark.parametrize("program", DISK.values(), ids=DISK.keys())
def test_sum_of_files_is_seen_by_who_looks(
    sandbox: Sandbox, tmp_path: Path, marker: str, program: str
) -> None:
    before = f"import os, signal, sys\nfolder = {str(tmp_path)!r}\n"
    after = "print('written', flush=True)\nsignal.pause()\n"
    command = [sys.executable, "-c", before + program + after, marker]
    with sandbox.running(command, writable=[tmp_path]) as process:
        assert process.breach() is None
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"

        assert process.breach() == "the task wrote more than 1 MiB to disk"

        process.kill()
        assert process.reason(process.wait()) == "the task wrote more than 1 MiB to disk"


def test_single_file_is_stopped_by_the_kernel(sandbox: Sandbox, tmp_path: Path) -> None:
    program = "import sys; open(sys.argv[1] + '/x', 'wb').write(bytes(3 << 20))"

    found = probe(sandbox, program, str(tmp_path), writable=[tmp_path])

    assert found.reason == "the task wrote more than 1 MiB to disk"
    assert (tmp_path / "x").stat().st_size == LIMITS.disk_bytes


def test_processor_time_and_time_are_limited(marker: str) -> None:
    found = probe(Sandbox(replace(LIMITS, cpu_s=1), REPORT), "while True: pass", marker)
    assert found.reason == "the task used more than 1 s of processor time"

    sleeper = Sandbox(replace(LIMITS, wall_s=0.01), REPORT)
    command = [sys.executable, "-c", "import signal; signal.pause()", marker]
    with sleeper.running(command) as process:
        time.sleep(0.02)
        assert process.breach() == "the task ran for more than 0.01 s"


def test_nothing_else_can_be_written(sandbox: Sandbox, tmp_path: Path) -> None:
    """Opened, and not written, so that a sandbox with a hole does no harm to this machine."""
    given = tmp_path / "given"
    given.mkdir()
    (given / "data").write_text("data")
    program = """
import glob, os, sys
places = [*sys.argv[1:], "/", "/usr", "/usr/bin", "/etc", "/dev", "/dev/shm", "/proc", "/sys"]
for place in places:
    for name in (place, place + "/new"):
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600))
            print("could write", name)
        except OSError:
            pass
for top in ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/1", "/sys"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if "/fd/" in path:
                continue
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                print("could write", path)
            except OSError:
                pass
try:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    print("could write sysrq")
except OSError:
    pass
try:
    os.chmod(sys.argv[1], 0o777)
    print("could change rights")
except OSError:
    pass
"""
    found = probe(sandbox, program, str(given / "data"), str(given), sys.prefix, readable=[given])

    assert (found.output, found.log) == ("", "")


DAEMON = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        print("there", flush=True)
        os.close(1)
        signal.pause()
    os._exit(0)
if sys.argv[2] == "stay":
    signal.pause()
"""


@pytest.mark.parametrize("report", [REPORT, BARE], ids=["as found", "without groups"])
@pytest.mark.parametrize("how", ["stay", "leave"])
def test_daemon_ends_with_its_task(marker: str, how: str, report: SandboxReport) -> None:
    command = [sys.executable, "-c", DAEMON, marker, how]
    with Sandbox(LIMITS, report).running(command) as process:
        assert process.stdout is not None
        if how == "stay":
            assert process.stdout.readline() == b"there\n"
            assert len(processes_with(marker)) >= 2
        else:
            assert process.wait() == 0

    assert processes_with(marker) == []


AGENT = """
import sys, time
from tests.agent.test_sandbox import LIMITS
from worker_agent.sandbox import Sandbox
command = [sys.executable, "-c", sys.argv[1], "in-the-sandbox", "stay", sys.argv[2]]
with Sandbox(LIMITS).running(command) as process:
    print(process.stdout.readline().decode(), flush=True)
    time.sleep(600)
"""


def test_task_ends_with_an_agent_that_is_killed(sandbox: Sandbox, marker: str) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, DAEMON, marker], stdout=subprocess.PIPE, cwd=ROOT
    )
    with agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"there\n"
        agent.kill()
    until = time.monotonic() + 30
    while processes_with(marker) and time.monotonic() < until:
        time.sleep(0.01)

    assert processes_with(marker) == []

    # What it could not remove, the next one does, or the one after it: for a moment, a process that
    # shows no command line any more still counts as one of its group.
    def groups_left() -> list[Path]:
        places = sandbox.report.tree.places
        return [one for place in places for one in place.glob(f"trainyard-{agent.pid}-*")]

    probe(sandbox, "pass")
    while groups_left() and time.monotonic() < until:
        probe(sandbox, "pass")
    assert groups_left() == []


def test_processes_of_the_host_are_neither_seen_nor_reached(sandbox: Sandbox) -> None:
    program = """
import ctypes, os, signal, sys
agent = int(sys.argv[1])
numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
assert agent not in numbers and len(numbers) <= 3, numbers
libc = ctypes.CDLL(None, use_errno=True)
for number in (agent, os.getppid()):
    # Attach, which is 16.
    assert libc.ptrace(16, number, None, None) == -1
    print(ctypes.get_errno())
for number in (agent, -1):
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        print("nobody")
"""
    # One that is high enough not to be a number in there as well.
    found = probe(sandbox, program, str(max(os.getpid(), 1000)))

    assert found.log == ""
    assert found.output.split() == ["1", "1", "nobody", "nobody"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        # A name space of users, in which one has all rights again: CLONE_NEWUSER.
        ({"x86_64": 272, "aarch64": 97}, "0x10000000"),
        # The same by the call that starts every process, which cannot be refused as such.
        ({"x86_64": 56, "aarch64": 220}, "0x10000000 | 17, 0, 0, 0, 0"),
        ({"x86_64": 165, "aarch64": 40}, "b'x', b'/tmp', b'tmpfs', 0, None"),
        # The keys of the session.
        ({"x86_64": 250, "aarch64": 219}, "0, -3, 1"),
    ],
    ids=["unshare", "clone", "mount", "keyctl"],
)
def test_calls_that_no_task_needs_are_refused(
    sandbox: Sandbox, call: dict[str, int], arguments: str
) -> None:
    number = call[platform.machine()]

    found = probe(
        sandbox, f"import ctypes; print(ctypes.CDLL(None).syscall({number}, {arguments}))"
    )

    assert found.output == "-1\n"


def test_link_that_a_task_left_behind_shows_it_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    own, keystore = tmp_path / "own", tmp_path / "keystore.json"
    own.mkdir()
    keystore.write_text(SECRET)
    (own / "manifest.json").symlink_to(keystore)
    program = "import sys; print(open(sys.argv[1]).read())"
    manifest = own / "manifest.json"

    found = probe(sandbox, program, str(manifest), readable=[manifest], writable=[own])

    assert SECRET not in found.output
    assert "FileNotFoundError" in found.log


def test_home_is_never_shown(sandbox: Sandbox) -> None:
    for path in (Path("/"), Path.home()):
        with pytest.raises(SandboxError, match="would show a task the home directory"):
            sandbox.command(["true"], readable=[path])


def test_machine_without_bubblewrap_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxError, match="not installed: install bubblewrap"):
        Sandbox(LIMITS)


def test_machine_without_user_name_spaces_is_told_what_to_allow(sandbox: Sandbox) -> None:
    """A sandbox is such a machine."""
    program = "from worker_agent.sandbox import find_sandbox; find_sandbox()"

    found = probe(sandbox, program)

    last = found.log.strip().splitlines()[-1]
    assert "bubblewrap cannot make a sandbox here" in last
    assert "allow user name spaces" in last


def test_command_that_is_not_there_is_named(sandbox: Sandbox) -> None:
    with tempfile.TemporaryFile() as log:
        with sandbox.running(["/nowhere"], log=log) as process:
            assert process.wait() == 1
            assert process.reason(1) is None
        log.seek(0)
        assert log.read() == b"/nowhere: No such file or directory\n"
