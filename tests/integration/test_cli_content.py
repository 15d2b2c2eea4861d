"""The command as a process: pipes, terminals, signals and servers."""

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainyard.content.board import put_up
from trainyard.content.cid import Cid, Codec
from trainyard.content.errors import SourceError
from trainyard.content.kubo_node import KuboNode
from trainyard.content.lifeline import dying_with_parent

pytest_plugins = ("tests.kubo_nodes",)

COMMAND = [sys.executable, "-c", "from trainyard.cli import main; main()"]
TIMEOUT_S = 60


_die_with_parent = dying_with_parent()


def _from_a_terminal() -> None:
    """Ctrl-C reaches it, also where the tests themselves run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _die_with_parent()


class Trainyard:
    """The command with a store of its own."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")},
            "TRAINYARD_STORE": str(store),
        }

    def start(self, *arguments: str | Path, **more: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            env=self.environment,
            preexec_fn=_from_a_terminal,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    def run(self, *arguments: str | Path, stdin: bytes = b"") -> tuple[int, bytes, str]:
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return process.returncode, out, err.decode()

    def document(self, *arguments: str | Path) -> Any:
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    @contextmanager
    def serving(self, *arguments: str | Path) -> Iterator[dict[str, str]]:
        """A server of ours, as the document that it prints; it ends by SIGTERM."""
        process = self.start(*arguments, "--json")
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                _, err = process.communicate(timeout=TIMEOUT_S)
                raise AssertionError(err.decode())
            yield json.loads(line)
        finally:
            process.terminate()
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, b"")


@pytest.fixture
def trainyard(tmp_path: Path) -> Trainyard:
    return Trainyard(tmp_path / "store")


@pytest.fixture
def other(tmp_path: Path) -> Trainyard:
    return Trainyard(tmp_path / "other")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large.bin"
    file.write_bytes(random.Random(3).randbytes(3_000_000))
    return file


def test_bytes_pass_through_pipes_unchanged(trainyard: Trainyard, large: Path) -> None:
    data = large.read_bytes()
    code, cid, err = trainyard.run("content", "add", "-", stdin=data)
    assert (code, err) == (0, "")

    code, out, err = trainyard.run("content", "cat", cid.decode().strip())

    assert (code, err) == (0, "")
    assert out == data


def test_reader_that_goes_away_ends_it_quietly(trainyard: Trainyard, large: Path) -> None:
    cid = trainyard.document("content", "add", large)["cid"]
    process = trainyard.start("content", "cat", cid)
    assert process.stdout is not None
    assert process.stderr is not None

    assert process.stdout.read(10) == large.read_bytes()[:10]
    process.stdout.close()

    assert process.wait(TIMEOUT_S) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_control_c_ends_it_quietly_and_leaves_nothing(trainyard: Trainyard) -> None:
    process = trainyard.start("content", "add", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # Blocks reach the store's staging only once it reads, and is past its start.
    process.stdin.write(bytes(1_000_000))
    process.stdin.write(random.Random(1).randbytes(1_000_000))
    process.stdin.flush()

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (130, b"")
    assert trainyard.document("content", "stat")["blocks"] == 0
    assert list((trainyard.store / "staging").iterdir()) == []


def test_another_store_fetches_from_a_served_one(
    trainyard: Trainyard, other: Trainyard, large: Path, tmp_path: Path
) -> None:
    (tmp_path / "tree").mkdir()
    large.rename(tmp_path / "tree" / "large.bin")
    (tmp_path / "tree" / "small.txt").write_text("small")
    cid = trainyard.document("content", "add", tmp_path / "tree")["cid"]

    with trainyard.serving("content", "serve", "--port", "0") as served:
        gateway = ("--gateway", served["gateway"])
        code, out, _ = other.run("content", "cat", f"{cid}/small.txt", *gateway)
        assert (code, out) == (0, b"small")
        assert other.document("content", "pin", cid, *gateway) == {"pinned": [cid]}

    assert other.document("content", "verify")["whole"]
    got = other.document("content", "get", cid, "-o", tmp_path / "copy")
    assert got["bytes"] == 3_000_005
    copy = tmp_path / "copy" / "large.bin"
    assert copy.read_bytes() == (tmp_path / "tree" / "large.bin").read_bytes()


def test_verify_heals_a_damaged_block_from_a_gateway(
    trainyard: Trainyard, other: Trainyard, large: Path
) -> None:
    cid = trainyard.document("content", "add", large)["cid"]
    assert other.document("content", "add", large)["cid"] == cid
    first_block = Cid.parse(_largest_block(other.store))
    block = other.store / "blocks" / first_block.digest.hex()[:2] / first_block.digest.hex()
    data = bytearray(block.read_bytes())
    data[1000] ^= 4
    block.write_bytes(data)

    with trainyard.serving("content", "serve", "--port", "0") as served:
        code, out, err = other.run("content", "verify", "--gateway", served["gateway"])

    assert (code, err) == (0, "")
    assert f"{first_block} is damaged in store {other.store}: replaced from" in out.decode()
    assert served["gateway"] in out.decode()
    assert other.document("content", "verify") == {
        **other.document("content", "verify"),
        "faults": [],
        "whole": True,
    }


def test_gateway_takes_blocks_only_as_a_board(trainyard: Trainyard, other: Trainyard) -> None:
    cid = Cid.of(Codec.RAW, b"a profile")
    with (
        trainyard.serving("content", "serve", "--port", "0") as plain,
        pytest.raises(SourceError, match="does not take blocks"),
    ):
        put_up(plain["gateway"], b"a profile")

    with trainyard.serving("content", "serve", "--port", "0", "--board") as board:
        put_up(board["gateway"], b"a profile")
        code, out, _ = other.run("content", "cat", str(cid), "--gateway", board["gateway"])

    assert (code, out) == (0, b"a profile")


def test_network_without_kubo_serves_the_embedded_store(
    trainyard: Trainyard, other: Trainyard
) -> None:
    code, cid, _ = trainyard.run("content", "add", "-", stdin=b"hello")
    assert code == 0

    with trainyard.serving("content", "network", "--no-kubo") as running:
        assert running["gateway"].startswith("http://127.0.0.1:")
        code, out, _ = other.run(
            "content", "cat", cid.decode().strip(), "--gateway", running["gateway"]
        )

    assert (code, out) == (0, b"hello")


def test_progress_is_drawn_on_a_terminal_only(trainyard: Trainyard, large: Path) -> None:
    leader, follower = pty.openpty()
    process = trainyard.start("content", "add", large, stderr=follower)
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], TIMEOUT_S)[0]:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the terminal's last user is gone
            break
        if not part:
            break
        shown += part
    os.close(leader)
    out, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0
    assert b"adding" in shown
    assert b"3.0 MB" in shown
    assert out.count(b"\n") == 1
    assert b"\x1b" not in out


def test_command_starts_without_the_heavy_packages() -> None:
    heavy = ("tensorflow", "numpy", "web3", "pydantic", "starlette", "rich.progress")
    code = f"import sys, trainyard.cli; print([m for m in {heavy!r} if m in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert found.stdout == b"[]\n"


def _largest_block(store: Path) -> str:
    file = max((store / "blocks").glob("*/*"), key=lambda path: path.stat().st_size)
    return "f01551220" + file.name


class TestKubo:
    """The same commands against a real node."""

    def test_content_is_kept_in_the_node(
        self, trainyard: Trainyard, kubo_node: KuboNode, tmp_path: Path, large: Path
    ) -> None:
        kubo = ("--kubo", kubo_node.api_url)
        in_node = trainyard.document("content", "add", large, *kubo)["cid"]

        assert in_node == trainyard.document("content", "add", large)["cid"]
        assert in_node in trainyard.document("content", "pin", "--list", *kubo)["pins"]
        stat = trainyard.document("content", "stat", in_node, *kubo)
        assert stat["logical_bytes"] == 3_000_000
        trainyard.document("content", "get", in_node, "-o", tmp_path / "copy", *kubo)
        assert (tmp_path / "copy").read_bytes() == large.read_bytes()
        assert trainyard.document("content", "verify", in_node, *kubo)["whole"]
        assert trainyard.document("content", "unpin", in_node, *kubo) == {"unpinned": in_node}

    def test_shards_have_the_same_cid_there(
        self, trainyard: Trainyard, kubo_node: KuboNode, tmp_path: Path
    ) -> None:
        np.savez(tmp_path / "set.npz", x=np.random.default_rng(0).random((500, 90)), y=range(500))
        shard = ("content", "shard", tmp_path / "set.npz", "--shards", "3", "--seed", "5")

        in_node = trainyard.document(*shard, "--kubo", kubo_node.api_url)

        assert in_node == trainyard.document(*shard)
        pins = trainyard.document("content", "pin", "--list", "--kubo", kubo_node.api_url)["pins"]
        assert in_node["cid"] in pins

    def test_network_runs_a_private_node_and_ends_it(
        self, trainyard: Trainyard, other: Trainyard, kubo_binary: Path
    ) -> None:
        with trainyard.serving("content", "network") as running:
            repo = Path(running["repo"])
            config = json.loads((repo / "config").read_text())
            code, cid, err = other.run(
                "content", "add", "-", "--kubo", running["kubo"], stdin=b"hi"
            )
            assert code == 0, err
            code, out, err = other.run(
                "content", "cat", cid.decode().strip(), "--gateway", running["gateway"]
            )

        assert (code, out) == (0, b"hi"), err
        assert config["Bootstrap"] in ([], None)
        assert all("/127.0.0.1/" in address for address in config["Addresses"]["Swarm"])
        assert not repo.exists()
        code, _, err = other.run("content", "gc", "--kubo", running["kubo"])
        assert code != 0
        assert running["kubo"].removeprefix("http://") in err
