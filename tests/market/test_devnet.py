"""A devnet by the real command, with a real Ganache and a real anvil."""

import os
import pty
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tests.quiet_web3  # noqa: F401
from tests.market.command import COMMAND, Trainyard
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import EndpointError
from trainyard.chain.keystore import address_in
from trainyard.content.names import ContentPath
from trainyard.content.settings import ContentSettings, open_content
from trainyard.devnet.agents import Agent, wait_for_agents
from trainyard.devnet.chain import OwnChain
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.errors import AlreadyRunningError, DevnetError, NotRunningError
from trainyard.devnet.options import DEVNET_PARAMS, ChainTool, Options
from trainyard.devnet.place import Place
from trainyard.devnet.process import Child, birth_of
from trainyard.devnet.record import Running
from trainyard.devnet.tools import find_tool

pytest_plugins = ("tests.kubo_nodes",)

WAIT_S = 30.0
QUICK = ("--chain", "anvil")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "net"


@pytest.fixture
def trainyard(tmp_path: Path, folder: Path) -> Iterator[Trainyard]:
    command = Trainyard(tmp_path)
    yield command
    code, _, err = command.run("devnet", "down", "--folder", folder)
    assert (code, err) == (0, "")


def small(tool: ChainTool, block_time_s: int = 0) -> Options:
    return Options(chain=tool, block_time_s=block_time_s, workers=1, auditors=1)


def client_of(devnet: Devnet) -> MarketClient:
    endpoints = Endpoints([devnet.url], chain_id=devnet.chain_id)
    return MarketClient(endpoints, devnet.market)


def pids(document: Any) -> list[int]:
    return [one["pid"] for one in document["processes"].values()]


def wait_until(is_so: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(numbers: list[int]) -> list[int]:
    return [pid for pid in numbers if birth_of(pid) is not None]


class TestLibrary:
    @pytest.mark.parametrize("tool", ["ganache", "anvil"])
    def test_it_has_a_market_with_short_windows_and_rich_people(self, tool: ChainTool) -> None:
        with Devnet(options=small(tool)) as devnet:
            assert client_of(devnet).params() == devnet.params == DEVNET_PARAMS
            assert devnet.accounts.keys() == {"owner", "requester", "worker-1", "auditor-1"}
            for person in devnet.accounts.values():
                balance = devnet.chain.request("eth_getBalance", person.address, "latest")
                assert int(balance, 16) > 9_999 * 10**18
            folder = devnet.place.folder

        assert not folder.exists()
        with pytest.raises(EndpointError, match="cannot be reached"):
            devnet.chain.head()

    @pytest.mark.parametrize("tool", ["ganache", "anvil"])
    def test_chain_and_its_clock_go_on_where_they_stood(
        self, tool: ChainTool, folder: Path
    ) -> None:
        with Devnet(folder, small(tool)) as first:
            before = first.chain.head()
            first.advance_chain_clock(5_000)
            head = first.chain.head()
            phrase = first.place.mnemonic.read_text()
        with Devnet(folder, small(tool)) as second:
            again = second.chain.request("eth_getBlockByNumber", hex(head.ref.number), False)
            second.chain.mine()
            later = second.chain.head()

        assert head.timestamp >= before.timestamp + 5_000
        assert again["hash"] == f"0x{head.ref.hash.hex()}"
        assert later.timestamp >= head.timestamp
        assert (second.url, second.market, second.gateway) == (
            first.url,
            first.market,
            first.gateway,
        )
        assert folder.joinpath("mnemonic").read_text() == phrase
        assert folder.joinpath("mnemonic").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("tool", ["ganache", "anvil"])
    def test_blocks_come_by_themselves_when_they_are_to(self, tool: ChainTool) -> None:
        with Devnet(options=small(tool, block_time_s=1)) as devnet:
            height = devnet.chain.head().ref.number
            wait_until(lambda: devnet.chain.head().ref.number > height + 1)

    def test_agent_that_ended_is_not_waited_for(self, tmp_path: Path) -> None:
        child = Child("worker-1", ["false"], tmp_path / "worker-1.log")
        agent = Agent("worker-1", tmp_path, tmp_path / "password", child)
        said: list[str] = []
        with Devnet(options=small("anvil")) as devnet:
            assert wait_for_agents(devnet, [agent], said.append) == [agent]
            chain = devnet.chain
            assert isinstance(chain, OwnChain)
            os.kill(chain.child.pid, signal.SIGKILL)
            chain.child.ended.wait()
            with pytest.raises(DevnetError, match="anvil ended with code -9"):
                wait_for_agents(devnet, [agent], said.append)

        assert said[0] == "waiting until worker-1 can be found on the market"

    def test_content_added_here_is_served_by_the_gateway(self, tmp_path: Path) -> None:
        (tmp_path / "hello").write_text("hello")
        with Devnet(options=small("anvil")) as devnet:
            kept = open_content(devnet.content_settings)
            path = ContentPath(kept.add(tmp_path / "hello").cid)
            elsewhere = open_content(
                devnet.content_settings.model_copy(update={"store": tmp_path / "else"})
            )
            assert b"".join(elsewhere.cat(path)) == b"hello"
            kept.close()
            elsewhere.close()

    def test_content_is_in_a_kubo_node_that_goes_and_comes_back(
        self, tmp_path: Path, folder: Path, kubo_binary: Path
    ) -> None:
        options = replace(small("anvil"), content="kubo")
        (tmp_path / "hello").write_text("hello")
        with Devnet(folder, options) as first:
            kept = open_content(first.content_settings)
            path = ContentPath(kept.add(tmp_path / "hello").cid)
            kept.close()
            running = Running.read(first.place)
        with Devnet(folder, options) as second:
            reader = ContentSettings(store=tmp_path / "else", kubo=None, gateways=second.gateway)
            elsewhere = open_content(reader)
            assert b"".join(elsewhere.cat(path)) == b"hello"
            elsewhere.close()

        assert running is not None
        assert running.kubo == second.content.kubo
        assert alive([running.processes["kubo"][0]]) == []

    def test_one_that_runs_is_loaded_by_its_folder(self, folder: Path) -> None:
        with pytest.raises(NotRunningError, match="trainyard devnet up"):
            Devnet.load(folder)
        with Devnet(folder, small("anvil")) as devnet:
            loaded = Devnet.load(folder)
            assert loaded.market == devnet.market
            assert loaded.accounts["worker-1"].key == devnet.accounts["worker-1"].key
            loaded.advance_chain_clock(60)
            with pytest.raises(AlreadyRunningError, match="already"), Devnet(folder):
                pass
        with pytest.raises(NotRunningError):
            Devnet.load(folder)

    def test_chain_that_forgot_the_market_begins_anew_and_says_so(self, folder: Path) -> None:
        said: list[str] = []
        with Devnet(folder, small("anvil")) as first:
            pass
        (folder / "chain" / "anvil.json").unlink()
        with Devnet(folder, small("anvil"), report=said.append) as second:
            assert client_of(second).task_count() == 0

        assert second.market != first.market
        assert "begins anew" in said[0]

    def test_folder_of_somebody_else_is_left_alone(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "content").write_text("precious")
        with pytest.raises(DevnetError, match="not empty and no devnet's"), Devnet(folder):
            pass
        assert (folder / "content").read_text() == "precious"

    def test_program_that_is_not_there_is_named_with_its_fix(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("TRAINYARD_ANVIL", str(tmp_path / "none"))
        with pytest.raises(DevnetError, match="TRAINYARD_ANVIL names"):
            find_tool("anvil")
        monkeypatch.delenv("TRAINYARD_ANVIL")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr("trainyard.devnet.tools._trees", lambda: [tmp_path])
        with pytest.raises(DevnetError, match="anvil is not installed: run 'npm ci'"):
            find_tool("anvil")

    def test_chain_dies_with_a_process_that_is_killed(self, folder: Path) -> None:
        program = (
            "import sys; from pathlib import Path; from trainyard.devnet.devnet import Devnet\n"
            "from trainyard.devnet.options import Options\n"
            f"with Devnet(Path({str(folder)!r}), Options(chain='anvil', auditors=1)):\n"
            "    print('up', flush=True); sys.stdin.read()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"up\n"
        running = Running.read(Place(folder))
        assert running is not None
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()

        wait_until(lambda: not alive([pid for pid, _ in running.processes.values()]))
        assert Place(folder).holder() is None


class TestCommand:
    def test_up_status_down_with_ganache(self, trainyard: Trainyard, folder: Path) -> None:
        at = ("--folder", folder)
        up = trainyard.document("devnet", "up", *at)
        status = trainyard.document("devnet", "status", *at)
        second = trainyard.run("devnet", "up", *at)

        assert up == status
        assert up["running"]
        assert up["chain"] == "ganache"
        assert up["url"].startswith("http://127.0.0.1:")
        # The devnet itself, its chain and its page's server.
        assert len(alive(pids(up))) == 3
        assert second[0] == 1
        assert "runs in" in second[2]
        assert second[2].count("\n") == 1
        assert trainyard.document("devnet", "down", *at) == {"ended": True}
        assert alive(pids(up)) == []
        assert trainyard.document("devnet", "down", *at) == {"ended": False}
        assert not trainyard.document("devnet", "status", *at)["running"]

    def test_it_outlives_the_terminal_and_its_session(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        line = shlex.join([*COMMAND, "devnet", "up", "--folder", str(folder), *QUICK])
        shell, terminal = pty.fork()
        if shell == 0:
            script = f"{line} && echo is-up && cat"
            os.execve("/bin/sh", ["sh", "-c", script], trainyard.environment)  # noqa: S606
        shown = b""
        while b"is-up" not in shown:
            shown += os.read(terminal, 4096)
        # The terminal goes away, which hangs up all of its session, and its leader is killed.
        os.close(terminal)
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)

        status = trainyard.document("devnet", "status", "--folder", folder)
        assert len(alive(pids(status))) == 3
        assert {os.getsid(pid) for pid in pids(status)}.isdisjoint({shell, os.getsid(0)})

    def test_killed_in_the_middle_of_up_leaves_nothing_after_down(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        process = trainyard.start("devnet", "up", "--folder", folder)
        place = Place(folder)
        # The chain is starting: its log is there, and the devnet is not.
        wait_until(place.chain_log.exists)
        holder = place.holder()
        assert holder
        process.kill()
        process.communicate()

        assert trainyard.document("devnet", "down", "--folder", folder) == {"ended": True}
        assert alive([holder]) == []
        assert children_of(holder) == []

    def test_interrupt_in_the_middle_of_up_ends_all_of_it(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        process = trainyard.start(
            *("devnet", "up", "--folder", folder), preexec_fn=_from_a_terminal
        )
        wait_until(Place(folder).chain_log.exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_S)

        assert process.returncode == 130
        assert Place(folder).holder() is None
        up = trainyard.document("devnet", "up", "--folder", folder)
        assert up["running"]

    def test_killed_devnet_takes_all_with_it_and_comes_up_again(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        at = ("--folder", folder)
        first = trainyard.document("devnet", "up", *at)
        os.kill(first["processes"]["devnet"]["pid"], signal.SIGKILL)
        wait_until(lambda: alive(pids(first)) == [])

        assert not trainyard.document("devnet", "status", *at)["running"]
        again = trainyard.document("devnet", "up", *at)
        assert (again["market"], again["url"]) == (first["market"], first["url"])

    def test_devnet_whose_chain_ends_ends_too(self, trainyard: Trainyard, folder: Path) -> None:
        at = ("--folder", folder)
        up = trainyard.document("devnet", "up", *at, *QUICK)
        os.kill(up["processes"]["anvil"]["pid"], signal.SIGKILL)
        wait_until(lambda: alive(pids(up)) == [])

        assert "anvil ended with code -9" in (folder / "devnet.log").read_text()

    def test_number_of_an_old_run_that_somebody_has_now_is_left_alone(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            folder.mkdir()
            (folder / "lock").write_text(str(other.pid))
            (folder / "running.json").write_text(
                '{"url": "", "gateway": "", "kubo": null, "processes": '
                f'{{"devnet": [{other.pid}, 1]}}}}'
            )
            assert trainyard.document("devnet", "down", "--folder", folder) == {"ended": False}
            trainyard.document("devnet", "up", "--folder", folder, *QUICK)
            assert trainyard.document("devnet", "down", "--folder", folder) == {"ended": True}
            assert other.poll() is None
            other.communicate(b"\n")

    def test_taken_port_is_named_with_its_fix(self, trainyard: Trainyard, folder: Path) -> None:
        at = ("--folder", folder)
        up = trainyard.document("devnet", "up", *at, *QUICK)
        trainyard.document("devnet", "down", *at)
        port = int(up["url"].rsplit(":", 1)[1])
        with socket.create_server(("127.0.0.1", port)):
            code, _, err = trainyard.run("devnet", "up", *at)

        assert code == 1
        assert f"port {port}, where the chain was, is somebody else's" in err
        assert Place(folder).holder() is None

    def test_reset_forgets_the_chain_and_the_accounts(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        at = ("--folder", folder)
        first = trainyard.document("devnet", "up", *at, *QUICK)
        code, _, err = trainyard.run("devnet", "up", *at, "--chain", "ganache")
        assert (code, "already" in err) == (1, True)

        assert trainyard.document("devnet", "reset", *at) == {"forgotten": True}
        assert not folder.exists()
        assert alive(pids(first)) == []
        second = trainyard.document("devnet", "up", *at, *QUICK)
        assert second["accounts"]["owner"] != first["accounts"]["owner"]

    def test_agents_are_on_the_market_have_homes_and_their_end_is_told(
        self, trainyard: Trainyard, folder: Path
    ) -> None:
        up = trainyard.document("devnet", "up", "--folder", folder, *QUICK, "--agents", "1")
        # At once: who posts a task right after it finds somebody.
        found = client_of(Devnet.load(folder)).worker(up["accounts"]["worker-1"])
        assert found.pool_index == 1
        home = folder / "agents" / "worker-1"
        assert up["accounts"]["worker-1"] == address_in(home / "keystore.json")
        assert up["market"] in (home / "config.toml").read_text()
        assert "worker-1" in up["processes"]

        os.kill(up["processes"]["worker-1"]["pid"], signal.SIGKILL)
        wait_until(lambda: "worker-1 ended" in (folder / "devnet.log").read_text())
        status = trainyard.document("devnet", "status", "--folder", folder)
        assert status["running"]
        assert not status["processes"]["worker-1"]["alive"]

    def test_no_key_is_on_a_command_line(self, trainyard: Trainyard, folder: Path) -> None:
        up = trainyard.document("devnet", "up", "--folder", folder, *QUICK)
        words = (folder / "mnemonic").read_text().split()
        for pid in pids(up):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            assert words[0] + " " + words[1] not in line
            assert "mnemonic" not in line


def _from_a_terminal() -> None:
    """Ctrl-C reaches it, also where the tests themselves run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def children_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(stat[1]) == parent:
                found.append(int(entry.name))
    return found
