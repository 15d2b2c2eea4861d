"""A Kubo node of our own: private, found again, and gone when its owner is."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trainyard.content.kubo_node import KuboNode, KuboNodeError, Ports
from trainyard.content.kubo_rpc import KuboRpc

pytest_plugins = ("tests.kubo_nodes",)

_LISTENING = "0A"
# As the kernel prints it: 127.0.0.1, bytes reversed.
_LOOPBACK = "0100007F"


def sockets_of(pid: int) -> dict[str, list[tuple[str, str]]]:
    """Local address and state of each socket of a process, by protocol."""
    inodes = set()
    for number in os.listdir(f"/proc/{pid}/fd"):
        target = os.readlink(f"/proc/{pid}/fd/{number}")
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found: dict[str, list[tuple[str, str]]] = {}
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        table = Path(f"/proc/{pid}/net/{protocol}").read_text().splitlines()[1:]
        rows = [line.split() for line in table]
        found[protocol] = [(row[1].split(":")[0], row[3]) for row in rows if row[9] in inodes]
    return found


def wait_for_end(pid: int) -> bool:
    """Whether a process, which need not be our child, ends within a minute."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 60)[0])
    finally:
        os.close(handle)


def test_it_listens_on_loopback_only(kubo_node: KuboNode) -> None:
    sockets = sockets_of(kubo_node.pid)
    listening = [address for address, state in sockets["tcp"] if state == _LISTENING]

    # API, gateway and swarm.
    assert listening == [_LOOPBACK] * 3
    assert not sockets["tcp6"]
    assert not sockets["udp"]
    assert not sockets["udp6"]


def test_it_announces_nothing_but_loopback(kubo_node: KuboNode) -> None:
    assert kubo_node.addresses
    for address in kubo_node.addresses:
        assert address.startswith("/ip4/127.0.0.1/tcp/")
        assert address.endswith(f"/p2p/{kubo_node.peer_id}")


def test_its_configuration_keeps_it_to_itself(kubo_node: KuboNode) -> None:
    config = KuboRpc(kubo_node.api_url).ask("config/show")

    assert config["Bootstrap"] == []
    assert config["Routing"]["Type"] == "none"
    assert config["Discovery"]["MDNS"]["Enabled"] is False
    assert config["AutoConf"]["Enabled"] is False
    assert config["AutoTLS"]["Enabled"] is False
    assert config["Provide"]["Enabled"] is False
    assert config["HTTPRetrieval"]["Enabled"] is False
    assert config["Plugins"]["Plugins"]["telemetry"]["Config"]["Mode"] == "off"
    assert not (kubo_node.repo / "telemetry_uuid").exists()


def test_its_private_key_is_for_its_owner_only(kubo_node: KuboNode) -> None:
    assert (kubo_node.repo / "config").stat().st_mode & 0o077 == 0


def test_a_repository_that_was_opened_up_is_private_again(
    kubo_binary: Path, tmp_path: Path
) -> None:
    node = KuboNode(kubo_binary, tmp_path / "repo")
    with node:
        peer_id = node.peer_id
    config = json.loads((node.repo / "config").read_text())
    config["Bootstrap"] = ["/ip4/192.0.2.1/tcp/4001/p2p/" + peer_id]
    config["Addresses"]["API"] = "/ip4/0.0.0.0/tcp/0"
    config["Discovery"]["MDNS"]["Enabled"] = True
    (node.repo / "config").write_text(json.dumps(config))
    with node:
        assert node.peer_id == peer_id
        assert node.api_url.startswith("http://127.0.0.1:")
        shown = KuboRpc(node.api_url).ask("config/show")
    assert shown["Bootstrap"] == []
    assert shown["Discovery"]["MDNS"]["Enabled"] is False


def test_variables_of_the_users_own_ipfs_do_not_reach_it(
    kubo_binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPFS_PATH", str(tmp_path / "of the user"))
    monkeypatch.setenv("IPFS_PROFILE", "server")
    with KuboNode(kubo_binary, tmp_path / "repo") as node:
        assert KuboRpc(node.api_url).ask("repo/stat")["RepoPath"] == str(tmp_path / "repo")
    assert not (tmp_path / "of the user").exists()


def test_a_killed_node_starts_again_where_it_was(kubo_binary: Path, tmp_path: Path) -> None:
    node = KuboNode(kubo_binary, tmp_path / "repo")
    node.start()
    ports, pid = node.ports, node.pid
    node.kill()
    assert not node.running
    assert wait_for_end(pid)
    # A file like the one that it left behind must not be taken for the new node's.
    (node.repo / "api").write_text("/ip4/127.0.0.1/tcp/1")

    with KuboNode(kubo_binary, node.repo, ports=ports) as again:
        assert again.ports == ports


def test_stopping_twice_is_no_error(kubo_binary: Path, tmp_path: Path) -> None:
    node = KuboNode(kubo_binary, tmp_path / "repo")
    node.stop()
    node.start()
    node.stop()
    node.stop()

    assert not node.running
    with pytest.raises(KuboNodeError, match="not running"):
        _ = node.api_url


def test_a_running_node_is_not_started_again(kubo_node: KuboNode) -> None:
    with pytest.raises(KuboNodeError, match="running already"):
        kubo_node.start()


def test_a_node_that_cannot_start_says_why(kubo_binary: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        node = KuboNode(kubo_binary, tmp_path / "repo", ports=Ports(api=port))
        with pytest.raises(KuboNodeError, match="ended at its start") as caught:
            node.start()

    assert "address already in use" in str(caught.value)
    assert not node.running


def test_a_program_that_is_no_kubo_is_named(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "config").write_text("{}")
    node = KuboNode(tmp_path / "nothing", tmp_path / "repo")
    with pytest.raises(KuboNodeError, match=r"cannot run .*nothing"):
        node.start()


def test_a_node_that_never_answers_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "config").write_text("{}")
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\necho I am asleep\nexec sleep 600\n")
    sleeper.chmod(0o755)
    node = KuboNode(sleeper, tmp_path / "repo", start_timeout_s=1.0)
    with pytest.raises(KuboNodeError, match=r"did not answer within 1 s: I am asleep"):
        node.start()
    assert not node.running


def test_a_node_that_does_not_mind_the_first_signal_is_ended(tmp_path: Path) -> None:
    """A stand-in that answers like a node and ignores SIGTERM."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "config").write_text("{}")
    stubborn = tmp_path / "stubborn"
    stubborn.write_text(
        f"#!{sys.executable}\n"
        "import http.server, os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "class Answer(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        self.send_response(200)\n"
        "        self.end_headers()\n"
        '        self.wfile.write(b\'{"ID": "x", "Addresses": []}\')\n'
        "server = http.server.HTTPServer(('127.0.0.1', 0), Answer)\n"
        "for name in ('gateway', 'api'):\n"
        "    with open(os.path.join(os.environ['IPFS_PATH'], name), 'w') as out:\n"
        "        out.write(f'/ip4/127.0.0.1/tcp/{server.server_port}')\n"
        "server.serve_forever()\n"
    )
    stubborn.chmod(0o755)
    node = KuboNode(stubborn, tmp_path / "repo", stop_timeout_s=0.5)
    node.start()
    pid = node.pid
    node.stop()

    assert wait_for_end(pid)


def test_it_outlives_the_thread_that_started_it(kubo_binary: Path, tmp_path: Path) -> None:
    node = KuboNode(kubo_binary, tmp_path / "repo")
    starter = threading.Thread(target=node.start)
    starter.start()
    starter.join()
    try:
        assert KuboRpc(node.api_url).ask("id")["ID"] == node.peer_id
    finally:
        node.stop()


def test_it_ends_with_the_process_that_started_it(kubo_binary: Path, tmp_path: Path) -> None:
    owner_program = (
        "import sys, pathlib\n"
        "from trainyard.content.kubo_node import KuboNode\n"
        "node = KuboNode(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))\n"
        "node.start()\n"
        "print(node.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner_program, kubo_binary, tmp_path / "repo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert wait_for_end(pid)
