"""The gate as a process: what it fetches, keeps, forgets, and when it ends."""

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.iptf_world import OpenFile, World, clean_environment, remove_block
from trainyard.content.cid import Cid
from trainyard.content.dag import decode_node
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.names import ContentPath
from trainyard.iptf.client import GateClient, GateError
from trainyard.iptf.codes import Code
from trainyard.iptf.gate import READY
from trainyard.iptf.reflog import Reflog
from trainyard.iptf.wire import Message, Op, WireError

MIB = 1 << 20
WAIT_S = 30


@pytest.fixture
def here(tmp_path: Path) -> World:
    return World(tmp_path)


@contextmanager
def _at_gate(here: World) -> Iterator[GateClient]:
    with here.gate() as gate, GateClient(gate.socket) as client:
        yield client


def _leaves(store: EmbeddedStore, file: Cid) -> list[Cid]:
    return [link.cid for link in decode_node(store.fetch(file)).links]


def _cached(here: World) -> list[str]:
    return sorted(os.listdir(here.cache / "files"))


def test_a_read_far_ahead_fetches_just_that_range(here: World) -> None:
    # Sparse on purpose: equal blocks are stored once, so 200 MiB cost nothing.
    source = here.folder / "sparse"
    with source.open("wb") as file:
        file.truncate(200 * MIB)
        file.seek(150 * MIB)
        file.write(b"far ahead")
    cid = here.content.add(source).cid

    with _at_gate(here) as client:
        file_at_gate = OpenFile.at(client, f"ipfs://{cid}")
        assert (file_at_gate.size, file_at_gate.complete) == (200 * MIB, False)
        until, complete = file_at_gate.ensure(150 * MIB, 9)

        assert os.pread(file_at_gate.fd, 9, 150 * MIB) == b"far ahead"
        assert 150 * MIB + 9 <= until < 160 * MIB
        assert not complete
        assert os.fstat(file_at_gate.fd).st_blocks * 512 < 20 * MIB


def test_a_reader_at_the_start_gets_the_whole_file_into_the_cache(here: World) -> None:
    data = os.urandom(10 * MIB + 17)
    cid = here.content.add(_file(here, data)).cid

    with _at_gate(here) as client:
        file = OpenFile.at(client, f"ipfs://{cid}")
        assert file.read(0, 1000) == data[:1000]
        assert file.read(5, len(data)) == data[5:]
        assert file.ensure(0, len(data)) == (len(data), True)
        file.close()
        again = OpenFile.at(client, f"ipfs://{cid}")
        assert again.complete
        assert os.pread(again.fd, len(data), 0) == data
    assert _cached(here) == [str(cid)]
    assert os.listdir(here.cache / "partial") == []


def test_a_cached_file_needs_no_source(here: World) -> None:
    data = os.urandom(3 * MIB)
    cid = here.content.add(_file(here, data)).cid
    with _at_gate(here) as client:
        OpenFile.at(client, f"ipfs://{cid}").ensure(0, len(data))
    for leaf in _leaves(here.store, cid):
        remove_block(here.store, leaf)

    with _at_gate(here) as client:
        file = OpenFile.at(client, f"ipfs://{cid}")
        assert file.complete
        assert file.read(0, len(data)) == data


def test_a_cached_file_that_the_disk_changed_is_fetched_again(here: World) -> None:
    data = os.urandom(3 * MIB)
    cid = here.content.add(_file(here, data)).cid
    with _at_gate(here) as client:
        OpenFile.at(client, f"ipfs://{cid}").ensure(0, len(data))
    path = here.cache / "files" / str(cid)
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(2 * MIB)
        file.write(bytes([data[2 * MIB] ^ 1]))

    with _at_gate(here) as client:
        assert OpenFile.at(client, f"ipfs://{cid}").read(0, len(data)) == data


def test_parts_that_nobody_reads_any_more_give_way(tmp_path: Path) -> None:
    here = World(tmp_path, cache_bytes=8 * MIB)
    cids = []
    for number in range(4):
        # So large that it is not fetched to its end for one who reads in the middle.
        with (tmp_path / "sparse").open("wb") as file:
            file.write(bytes([number]))
            file.truncate(80 * MIB)
        cids.append(here.content.add(tmp_path / "sparse").cid)

    with _at_gate(here) as client:
        for cid in cids[:-1]:
            file_at_gate = OpenFile.at(client, f"ipfs://{cid}")
            file_at_gate.ensure(50 * MIB, 3 * MIB)
            file_at_gate.close()
        last = OpenFile.at(client, f"ipfs://{cids[-1]}")
        last.ensure(50 * MIB, 3 * MIB)

        parts = [entry.stat() for entry in (here.cache / "partial").iterdir()]
        assert os.fstat(last.fd).st_ino in [part.st_ino for part in parts]
        assert sum(part.st_blocks * 512 for part in parts) <= 8 * MIB


def test_the_cache_stays_within_its_bound(tmp_path: Path) -> None:
    here = World(tmp_path, cache_bytes=5 * MIB)
    files = {f"file-{number}": os.urandom(MIB) for number in range(12)}
    cid = here.add(files)

    with _at_gate(here) as client:
        opened = [OpenFile.at(client, f"ipfs://{cid}/{name}") for name in files]
        for file, data in zip(opened, files.values(), strict=True):
            assert file.read(0, MIB) == data, "also when it was evicted while it is open"

    held = sum(entry.stat().st_size for entry in (here.cache / "files").iterdir())
    assert 0 < held <= 5 * MIB
    last = here.content.stat(ContentPath(cid, ("file-11",))).cid
    assert str(last) in _cached(here)


def test_a_file_above_the_bound_is_readable_and_not_kept(tmp_path: Path) -> None:
    here = World(tmp_path, cache_bytes=MIB)
    data = os.urandom(4 * MIB)
    cid = here.content.add(_file(here, data)).cid

    with _at_gate(here) as client:
        file = OpenFile.at(client, f"ipfs://{cid}")
        assert file.read(0, len(data)) == data
        file.close()
    assert _cached(here) == []


def test_two_gates_share_one_cache(here: World) -> None:
    files = {f"file-{number}": os.urandom(2 * MIB) for number in range(4)}
    cid = here.add(files)

    with _at_gate(here) as one, _at_gate(here) as other:
        for name, data in files.items():
            pair = [OpenFile.at(client, f"ipfs://{cid}/{name}") for client in (one, other)]
            assert [file.read(0, len(data)) for file in pair] == [data, data]
            for file in pair:
                file.close()
        for name in files:
            assert OpenFile.at(other, f"ipfs://{cid}/{name}").complete
    # Readers do not wait until a file has its name; the end of a gate does.
    assert len(_cached(here)) == len(files)
    assert os.listdir(here.cache / "partial") == []


def test_a_fetch_that_failed_is_tried_again(here: World) -> None:
    data = os.urandom(6 * MIB)
    cid = here.content.add(_file(here, data)).cid
    leaf = _leaves(here.store, cid)[10]
    block = here.store.fetch(leaf)
    remove_block(here.store, leaf)

    with _at_gate(here) as client:
        file = OpenFile.at(client, f"ipfs://{cid}")
        with pytest.raises(GateError) as refused:
            file.ensure(0, len(data))
        assert refused.value.code is Code.UNAVAILABLE
        with here.store.batch() as batch:
            batch.put(leaf, block)
        assert file.read(0, len(data)) == data


def test_a_full_disk_is_said_to_be_full_and_is_used_again_when_it_is_not(here: World) -> None:
    data = os.urandom(3 * MIB)
    cid = here.content.add(_file(here, data)).cid
    with here.gate() as gate, GateClient(gate.socket) as client:
        # The kernel refuses a file above this as it refuses one on a full disk.
        before = resource.prlimit(gate.pid, resource.RLIMIT_FSIZE, (MIB, resource.RLIM_INFINITY))
        with pytest.raises(GateError) as refused:
            OpenFile.at(client, f"ipfs://{cid}")
        assert refused.value.code is Code.RESOURCE_EXHAUSTED
        resource.prlimit(gate.pid, resource.RLIMIT_FSIZE, before)
        assert OpenFile.at(client, f"ipfs://{cid}").read(0, len(data)) == data


def test_a_gate_without_a_free_descriptor_says_so_and_goes_on_when_it_has_one(here: World) -> None:
    cid = here.add({"a": os.urandom(2 * MIB)})
    with here.gate() as gate, GateClient(gate.socket) as client:
        client.ask(Message(Op.STAT).text(f"ipfs://{cid}/a"))
        used = len(os.listdir(f"/proc/{gate.pid}/fd"))
        _, most = resource.prlimit(gate.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(gate.pid, resource.RLIMIT_NOFILE, (used, most))
        for request in (
            Message(Op.OPEN).text(f"ipfs://{cid}/a"),
            Message(Op.CREATE).text("iptf://mfs/a").u8(0),
        ):
            with pytest.raises(GateError, match="Too many open files") as refused:
                client.ask(request)
            assert refused.value.code is Code.RESOURCE_EXHAUSTED
        resource.prlimit(gate.pid, resource.RLIMIT_NOFILE, (most, most))

        assert OpenFile.at(client, f"ipfs://{cid}/a").size == 2 * MIB


def test_a_second_reader_goes_on_with_what_the_first_began(here: World) -> None:
    with (here.folder / "sparse").open("wb") as file:
        file.truncate(200 * MIB)
        file.seek(150 * MIB)
        file.write(b"far ahead")
    cid = here.content.add(here.folder / "sparse").cid

    with here.gate() as gate, GateClient(gate.socket) as one, GateClient(gate.socket) as other:
        first = OpenFile.at(one, f"ipfs://{cid}")
        assert first.read(150 * MIB, 9) == b"far ahead"
        second = OpenFile.at(other, f"ipfs://{cid}")
        assert os.fstat(second.fd).st_ino == os.fstat(first.fd).st_ino
        assert not second.complete
        for block in (here.store.root / "blocks").glob("*/*"):
            block.rename(block.with_name(f"away-{block.name}"))

        assert second.read(150 * MIB, 9) == b"far ahead", "it is fetched once for both"
        for block in (here.store.root / "blocks").glob("*/away-*"):
            block.rename(block.with_name(block.name.removeprefix("away-")))
        first.close()
        assert second.read(100 * MIB, 5) == bytes(5)


def test_content_of_a_gateway_is_verified_and_cached(tmp_path: Path) -> None:
    there = World(tmp_path / "there")
    there.folder.mkdir()
    files = {"a/large": os.urandom(9 * MIB), "a/small": b"small"}
    cid = there.add(files)
    with GatewayServer(there.content) as server:
        here = World(tmp_path / "here", gateways=server.address)
        with _at_gate(here) as client:
            for name, data in files.items():
                assert OpenFile.at(client, f"ipfs://{cid}/{name}").read(0, len(data)) == data
    assert len(_cached(here)) == 2


def test_the_handles_of_a_process_end_with_it(here: World) -> None:
    cid = here.add({"a": os.urandom(2 * MIB)})
    with here.gate() as gate, GateClient(gate.socket) as survivor:
        with GateClient(gate.socket) as client:
            handle = OpenFile.at(client, f"ipfs://{cid}/a").handle
            survivor.ask(Message(Op.ENSURE).u64(handle).u64(0).u64(1))
        _until_unknown(survivor, handle)


def _until_unknown(client: GateClient, handle: int) -> None:
    """The gate notices a closed connection by itself, a moment later."""
    code = Code.OK
    end = time.monotonic() + WAIT_S
    while code is Code.OK and time.monotonic() < end:
        try:
            client.ask(Message(Op.ENSURE).u64(handle).u64(0).u64(1))
        except GateError as error:
            code = error.code
    assert code is Code.UNKNOWN_HANDLE


def test_nonsense_ends_the_connection_and_not_the_gate(here: World) -> None:
    with here.gate() as gate, GateClient(gate.socket) as client:
        with GateClient(gate.socket) as rude, pytest.raises((WireError, OSError)):
            rude.ask(Message(Op.OPEN).u32(1 << 31))
        with pytest.raises(GateError) as refused:
            client.ask(Message(99))
        assert refused.value.code is Code.UNIMPLEMENTED


def test_a_gate_ends_with_its_owner_and_leaves_nothing(here: World, tmp_path: Path) -> None:
    cid = here.add({"a": b"1"})
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os\n"
            "from trainyard.iptf.launching import GateProcess\n"
            "gate = GateProcess()\n"
            "print(gate.pid, gate.socket, flush=True)\n"
            "input()\n",
        ],
        env={**clean_environment(), **here.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    number, socket_path = owner.stdout.readline().split()
    gate = os.pidfd_open(int(number))
    with GateClient(Path(socket_path)) as client:
        assert OpenFile.at(client, f"ipfs://{cid}/a").complete
    owner.kill()
    owner.communicate()

    _ended(gate)
    assert not Path(socket_path).parent.exists()


def _ended(process: int) -> None:
    """Wait for the end of a process that is not our child."""
    ready, _, _ = select.select([process], [], [], WAIT_S)
    os.close(process)
    assert ready, "the process did not end"


def test_a_gate_that_dies_is_started_again_at_the_same_place(here: World) -> None:
    data = os.urandom(2 * MIB)
    cid = here.add({"a": data})
    with here.gate() as gate:
        with GateClient(gate.socket) as client:
            file = OpenFile.at(client, f"ipfs://{cid}/a")
            process = os.pidfd_open(gate.pid)
            os.kill(gate.pid, signal.SIGKILL)
            _ended(process)
            with pytest.raises((WireError, OSError)):
                file.ensure(0, 1)
        with _reconnected(gate.socket) as client:
            with pytest.raises(GateError) as refused:
                client.ask(Message(Op.ENSURE).u64(file.handle).u64(0).u64(1))
            assert refused.value.code is Code.UNKNOWN_HANDLE
            assert OpenFile.at(client, f"ipfs://{cid}/a").read(0, len(data)) == data


def _reconnected(path: Path) -> GateClient:
    """Poll, for whoever restarts the gate tells nobody."""
    end = time.monotonic() + WAIT_S
    while True:
        try:
            return GateClient(path)
        except GateError:
            assert time.monotonic() < end, "the gate did not come back"
            time.sleep(0.05)


def test_ranges_that_arrive_last_are_recorded(here: World) -> None:
    cid = here.add({"a": os.urandom(2 * MIB)})
    with here.gate() as gate, GateClient(gate.socket) as client:
        run = client.begin_run(["python", "train.py"], "/work")
        file = OpenFile.at(client, f"iptf://ipfs/{cid}//a")
        file.report((10, 20), (50, 70))

    (read,) = Reflog(here.folder / "store" / "reflog.sqlite").reads(run)
    assert read.uri == f"ipfs://{cid}/a"
    assert read.ranges == ((10, 20), (50, 70))
    assert read.cid == str(here.content.stat(ContentPath(cid, ("a",))).cid)


def test_a_gate_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "something else").touch()
    environment = {**clean_environment(), **World(tmp_path).environment}
    done = subprocess.run(
        [sys.executable, "-m", "trainyard.iptf.gate"],
        env={**environment, "IPTF_SOCKET": str(tmp_path / "socket")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )

    assert done.returncode == 1
    assert READY not in done.stdout
    assert "holds no store" in done.stderr


def _file(here: World, data: bytes) -> Path:
    path = here.folder / "source"
    path.write_bytes(data)
    return path
