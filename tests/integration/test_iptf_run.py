"""The `iptf` command: unmodified programs, what they read, and the same again."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.integration.iptf_world import PROGRAM_S, World, clean_environment, remove_block
from trainyard.content.cid import Cid
from trainyard.content.names import ContentPath
from trainyard.iptf.intervals import Intervals

DATA = os.urandom(3_000_000)
# Knows nothing of us: plain TensorFlow, paths on its command line.
SCRIPT = """
import sys
import tensorflow as tf

source, target = sys.argv[1:3]
with tf.io.gfile.GFile(source, "rb") as file:
    file.seek(1000)
    middle = file.read(500)
text = tf.io.read_file("iptf://mfs/input.txt").numpy()
with tf.io.gfile.GFile(target, "wb") as file:
    file.write(text + middle)
print(len(tf.io.read_file(target).numpy()))
keep = tf.io.gfile.GFile(source, "rb")  # open until the process ends
keep.seek(2_000_000)
keep.read(10)
sys.exit(int(sys.argv[3]))
"""


@pytest.fixture
def here(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def data(here: World) -> Cid:
    return here.add({"data.bin": DATA})


def test_an_unmodified_program_reads_writes_and_can_be_reproduced(here: World, data: Cid) -> None:
    script = here.folder / "train.py"
    script.write_text(SCRIPT)
    local = here.folder / "input.txt"
    local.write_text("as it was")
    here.told("cp", str(local), "iptf://mfs/input.txt")
    source = f"ipfs://{data}/data.bin"

    done = here.iptf("python", "train.py", source, "iptf://mfs/out", "7")

    assert (done.returncode, done.stdout) == (7, "509\n"), done.stderr
    assert here.told("cat", "iptf://mfs/out").stdout.startswith("as it was")
    reads = here.reflog(1)
    ranges = Intervals((start, end) for start, end in reads[source]["ranges"])
    # GFile reads some way ahead of the program.
    assert ranges.covers(1000, 1500)
    assert ranges.covers(2_000_000, 2_000_010)
    assert not ranges.covers(0, 1)
    assert not ranges.covers(1_000_000, 1_000_001)
    assert reads[source]["cid"] == str(here.content.stat(ContentPath(data, ("data.bin",))).cid)
    assert reads["iptf://mfs/input.txt"]["ranges"] == [[0, 9]]
    assert not reads["iptf://mfs/input.txt"]["own"]
    assert reads["iptf://mfs/out"]["own"]
    file = here.content.stat(ContentPath(data, ("data.bin",))).cid
    assert file not in here.store.pins()
    assert str(file) in here.told("reflog", "--pin").stdout
    assert file in here.store.pins()
    (run,) = json.loads(here.told("reflog", "--runs", "--json").stdout)
    assert run["command"] == ["python", "train.py", source, "iptf://mfs/out", "7"]
    assert (run["cwd"], run["exit_code"]) == (str(here.folder), 7)

    # The input changes; what the run read does not.
    local.write_text("something new")
    here.told("cp", str(local), "iptf://mfs/input.txt")
    again = here.iptf("reproduce", "1", cwd=here.folder.parent)

    assert again.returncode == 7, again.stderr
    assert "509\n" in again.stdout
    assert "run 2 read the same CIDs as run 1" in again.stderr
    assert here.told("cat", "iptf://mfs/input.txt").stdout == "something new"

    # A program that now reads something else is found out.
    other = here.add({"data.bin": b"x" * 3_000_000})
    script.write_text(SCRIPT.replace("sys.argv[1:3]", f'"ipfs://{other}/data.bin", sys.argv[2]'))
    changed = here.iptf("reproduce", "1")

    assert changed.returncode == 1
    assert f"ipfs://{other}/data.bin" in changed.stderr
    assert "did not read the same CIDs" in changed.stderr


def test_programs_get_their_arguments_and_signals(here: World) -> None:
    show = "import sys; print(sys.argv[1:])"
    done = here.iptf("python", "-c", show, "--json", "-h", "--", "--run=3", "ls")
    assert done.stdout == "['--json', '-h', '--', '--run=3', 'ls']\n"
    assert here.iptf("python", "-c", "import os; os.kill(os.getpid(), 9)").returncode == 137
    missing = here.iptf("no-such-program")
    assert missing.returncode == 127
    assert "no-such-program" in missing.stderr
    # One that takes no notice of Ctrl-C is ended by SIGTERM, through us.
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "trainyard.iptf",
            "python",
            "-c",
            "print('up', flush=True); input()",
        ],
        env={**clean_environment(), **here.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PROGRAM_S)
    assert process.returncode == 128 + signal.SIGTERM


def test_programs_below_join_the_gate_and_keep_their_own_sitecustomize(
    here: World, data: Cid
) -> None:
    theirs = here.folder / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import builtins; builtins.theirs = 'ran'\n")
    world = World(here.folder, more={"PYTHONPATH": str(theirs)})

    script = here.folder / "parent.py"
    script.write_text(
        "import subprocess, sys\n"
        "code = 'import sitecustomize, tensorflow as tf; print(theirs, sitecustomize.__file__);'\n"
        f"code += 'tf.io.read_file(\"ipfs://{data}/data.bin\")'\n"
        "sys.exit(subprocess.call([sys.executable, '-c', code]))\n"
    )

    done = world.iptf("python", str(script))

    assert done.stdout == f"ran {theirs / 'sitecustomize.py'}\n", done.stderr
    assert list(here.reflog(1)) == [f"ipfs://{data}/data.bin"]


def test_a_forked_child_reads_what_its_parent_opened_and_more(here: World, data: Cid) -> None:
    told = here.python(
        f"""
        import os
        import tensorflow as tf
        from trainyard.iptf import enable

        enable()
        base = "ipfs://{data}/data.bin"
        with tf.io.gfile.GFile(base, "rb") as file:
            start = file.read(10)
            if (child := os.fork()) == 0:
                file.seek(20)
                whole = tf.io.gfile.GFile(base, "rb").read()
                print(file.read(5).hex(), len(whole), flush=True)
                del file
                os._exit(0)
            os.waitpid(child, 0)
            file.seek(2_999_990)
            print(file.read().hex())
        """
    )

    assert told == f"{DATA[20:25].hex()} 3000000\n{DATA[-10:].hex()}\n"


def test_a_gate_that_is_killed_under_a_program_comes_back(here: World, data: Cid) -> None:
    """The bytes are cut off in mid-file, then there again, for the same open file."""
    big = here.folder / "big"
    with big.open("wb") as sparse:
        sparse.truncate(200 << 20)
        sparse.seek(150 << 20)
        sparse.write(b"far ahead")
    large = here.content.add(big).cid
    told = here.python(
        f"""
        import glob, os, signal, time
        import tensorflow as tf
        from trainyard.iptf import enable

        enable()
        (gate,) = (
            int(path.split("/")[2])
            for path in glob.glob("/proc/[0-9]*/stat")
            if (words := open(path).read().rpartition(")")[2].split())[1] == str(os.getpid())
            and b"trainyard.iptf.gate" in open(path[:-4] + "cmdline", "rb").read()
        )
        file = tf.io.gfile.GFile("ipfs://{large}", "rb")
        file.read(10)
        os.kill(gate, signal.SIGSTOP)  # no answer can be under way
        os.kill(gate, signal.SIGKILL)
        failures = 0
        while True:
            try:
                file.seek(150 << 20)
                found = file.read(9)
                break
            except tf.errors.UnavailableError:
                failures += 1
                time.sleep(0.05)
        print(found, failures > 0, tf.io.read_file("ipfs://{data}/data.bin").numpy()[:0])
        """
    )

    assert told == "b'far ahead' True b''\n"


def test_listing_reading_and_copying(here: World, data: Cid) -> None:
    listed = json.loads(here.told("ls", f"ipfs://{data}", "--json").stdout)
    file = str(here.content.stat(ContentPath(data, ("data.bin",))).cid)
    assert listed == [{"name": "data.bin", "kind": "file", "size": len(DATA), "cid": file}]
    assert here.told("ls", str(data)).stdout.split() == [str(len(DATA)), "data.bin"]

    here.told("cp", f"ipfs://{data}/data.bin", "copy")
    here.told("cp", f"ipfs://{data}/data.bin", "iptf://mfs/copy")
    here.told("cp", "iptf://mfs/copy", "third")
    assert (here.folder / "copy").read_bytes() == DATA
    assert (here.folder / "third").read_bytes() == DATA
    cid = here.told("publish", "mfs/copy").stdout.strip()
    assert cid == file
    assert here.told("publish").stdout.strip() != cid


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cat", "nonsense"], 2, "no CID"),
        (["cat", "iptf://mfs/nothing"], 3, "No such file"),
        (["cp", "nothing-here", "iptf://mfs/x"], 2, "no file"),
        (["publish", "iptf://ipfs/x"], 1, "cannot be changed"),
        (["reflog", "--run", "99"], 3, "no run 99"),
        (["reproduce", "99"], 3, "no run 99"),
    ],
)
def test_failures_have_exit_codes(here: World, arguments: list[str], code: int, said: str) -> None:
    done = here.iptf(*arguments)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_and_a_corrupt_block_differ_in_the_exit_code(here: World, data: Cid) -> None:
    remove_block(here.store, data)

    assert here.iptf("ls", f"ipfs://{data}").returncode == 3


def _heed_interrupts() -> None:
    """A shell has its background jobs ignore them, and with those all their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_folder_is_served_until_it_is_stopped(here: World, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello")
    process = subprocess.Popen(
        [sys.executable, "-m", "trainyard.iptf", "serve", str(folder)],
        env={**clean_environment(), **here.environment},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    try:
        assert process.stdout is not None
        cid, gateway, line = (process.stdout.readline().split(maxsplit=1)[1] for _ in range(3))
        address = gateway.split()[0]
        url = f"{address}/ipfs/{cid.strip()}?format=raw"
        with urllib.request.urlopen(url, timeout=PROGRAM_S) as answer:  # noqa: S310
            assert Cid.parse(cid.strip()).matches(answer.read())
        there = World(tmp_path / "elsewhere", gateways=address)
        there.folder.mkdir()
        assert there.iptf("cat", f"ipfs://{cid.strip()}/hello.txt").stdout == "hello"
        call = "import tensorflow as tf; print(" + line.strip() + ")"
        assert there.iptf("python", "-c", call).stdout == "['hello.txt']\n"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PROGRAM_S)
    assert process.returncode != 0


def test_tensorboard_shows_logs_of_mfs(here: World) -> None:
    here.python(
        """
        import tensorflow as tf
        from trainyard.iptf import enable

        enable()
        with tf.summary.create_file_writer("iptf://mfs/logs/run").as_default():
            for step in range(3):
                tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
        """
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "trainyard.iptf", "tensorboard"),
            *("--logdir", "iptf://mfs/logs", "--host", "127.0.0.1", "--port", "0"),
        ],
        env={**clean_environment(), **here.environment},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = _address(process)
        query = "data/plugin/scalars/scalars?tag=loss&run=run"
        assert _once_loaded(f"{address}data/runs?") == ["run"]
        points = _once_loaded(address + query)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PROGRAM_S)
    assert [(step, round(value, 3)) for _, step, value in points] == [
        (0, 1.0),
        (1, 0.5),
        (2, 0.333),
    ]


def _once_loaded(url: str) -> Any:
    """What TensorBoard answers once it has something: it listens before it has read its logs."""
    deadline = time.monotonic() + PROGRAM_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PROGRAM_S) as answer:  # noqa: S310
                if found := json.load(answer):
                    return found
        except HTTPError as error:
            # Until a run's points are read nobody knows its tags.
            if error.code != HTTPStatus.NOT_FOUND:
                raise
        assert time.monotonic() < deadline, f"{url} has nothing after {PROGRAM_S} s"
        time.sleep(0.1)


def _address(process: "subprocess.Popen[str]") -> str:
    """Where TensorBoard says that it listens."""
    assert process.stderr is not None
    said = ""
    while select.select([process.stderr], [], [], PROGRAM_S)[0]:
        line = process.stderr.readline()
        said += line
        if "http://127.0.0.1:" in line:
            return next(word for word in line.split() if word.startswith("http"))
        assert line, said
    pytest.fail(said)
