"""What an operator sees of an agent that runs, and of one that does not; and what it obeys."""

import csv
import io
import json
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from eth_utils.address import to_checksum_address

from tests.agent.operators import CLASS, NOBODY, Scene, bonded, free_port, scene, wait_until
from trainyard.devnet.agents import Agent, start_agent
from trainyard.devnet.options import DEVNET_PARAMS, ETHER
from worker_agent.settings import Home

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("market"), workers=4) as found:
        yield found


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def agent(market: Scene, metrics_port: int) -> Agent:
    """One that audits for others."""
    wake_by = json.dumps(market.devnet.url.replace("http", "ws"))
    agent = market.agent("worker-1", **bonded(), metrics_port=metrics_port, chain__wake_by=wake_by)
    wait_until(lambda: market.worker("status", agent.home)["running"])
    wait_until(lambda: _account(market, agent.home)["is_in_pool"])
    return agent


def _account(market: Scene, home: Path) -> dict[str, object]:
    account = market.worker("status", home)["account"]
    return account or {"is_in_pool": False}


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


class TestRunning:
    def test_status_says_how_it_is_and_what_it_has(self, market: Scene, agent: Agent) -> None:
        found = market.worker("status", agent.home)

        assert found["pid"] == agent.child.pid
        assert found["mode"] == "running"
        assert found["address"] == market.devnet.accounts["worker-1"].address
        assert found["chain"]["market"] == market.devnet.market
        assert list(found["chain"]["endpoints"].values()) == [""]
        # A block may come between two looks.
        assert found["chain"]["lag_blocks"] in (0, 1)
        assert found["account"]["bond"] == DEVNET_PARAMS.seat_bond
        assert found["account"]["balance_wei"] > 9_000 * ETHER
        assert found["tasks"] == []
        text = market.text("status", agent.home)
        assert f"pid {agent.child.pid}" in text
        assert "0.1 ETH, 0 ETH of it held; in the pool of auditors" in text

    def test_socket_is_not_for_others(self, agent: Agent) -> None:
        assert Home(agent.home).control.stat().st_mode & 0o777 == 0o600

    def test_pause_holds_until_resume(self, market: Scene, agent: Agent) -> None:
        assert market.worker("pause", agent.home) == {"running": True, "mode": "paused"}
        assert market.worker("status", agent.home)["mode"] == "paused"
        assert market.worker("resume", agent.home) == {"running": True, "mode": "running"}

    def test_why_not_tells_all_reasons(self, market: Scene, agent: Agent) -> None:
        requester = market.person("requester")
        task = requester.post(min_settled=3)

        def reasons() -> str:
            found = market.worker("why-not", agent.home, str(task))["reasons"]
            return " | ".join(f"{one['why']} -> {one['change']}" for one in found)

        told = wait_until(lambda: "it asks for" in (found := reasons()) and found)
        assert "it asks for 3 settled tasks, and we have 0 -> settle 3 more" in told
        assert "it is for environment class" in told
        assert "there is no task 99" in market.text("why-not", agent.home, "99")

    def test_task_whose_manifest_is_no_manifest_is_listed_with_its_reason(
        self, market: Scene, agent: Agent
    ) -> None:
        """Only tasks that we have a part in are listed; of others, `why-not` tells."""
        requester = market.person("requester")
        env_class = bytes.fromhex(market.worker("status", agent.home)["env_class"])
        task = requester.post(env_class=env_class)

        def why() -> bool:
            found = market.worker("why-not", agent.home, str(task))["reasons"]
            return any("could not be fetched" in one["why"] for one in found)

        wait_until(why)
        assert market.worker("tasks", agent.home) == {"tasks": []}

    def test_metrics_tell_how_it_is(self, agent: Agent, metrics_port: int) -> None:
        text = _page(metrics_port)
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

        assert float(values["trainyard_head"]) > 0
        assert values['trainyard_mode{mode="running"}'] == "1.0"
        assert float(values["trainyard_bond"]) == DEVNET_PARAMS.seat_bond
        assert float(values["trainyard_resident_bytes"]) < 200e6
        assert float(values["trainyard_events_total"]) > 0
        assert values["trainyard_is_in_pool"] == "1.0"

    @pytest.mark.parametrize("name", ["alerts.yaml", "grafana.json"])
    def test_what_dashboard_and_alerts_name_is_there(
        self, agent: Agent, metrics_port: int, name: str
    ) -> None:
        text = (ROOT / "docs" / "operations" / name).read_text()
        named = set(re.findall(r"\btrainyard_[a-z_]+", text))
        # Counters are declared without their ending.
        told = set(re.findall(r"^# TYPE (trainyard_[a-z_]+)", _page(metrics_port), re.MULTILINE))

        assert named
        assert named - told == set()
        yaml.safe_load(text)

    def test_metrics_answer_nothing_else(self, agent: Agent, metrics_port: int) -> None:
        for path, data, code in (("secret", None, 404), ("metrics", b"x", 405)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/{path}", data, timeout=20)
            assert caught.value.code == code
            caught.value.close()

    def test_withdrawal_of_nothing_is_refused_by_the_agent(
        self, market: Scene, agent: Agent
    ) -> None:
        address = str(market.devnet.accounts["worker-1"].address)
        code, _, err = market.command.run(
            "worker", "withdraw", "--home", agent.home, "--to", NOBODY
        )
        assert code == 1
        assert f"the credit of {address} is 0" in err

    def test_logs_can_be_read_by_people_and_by_task(self, market: Scene, agent: Agent) -> None:
        assert "started" in market.text("logs", agent.home, "-n", "1000")
        code, out, _ = market.command.run(
            "worker", "logs", "--home", agent.home, "--task", "2", "--json"
        )
        assert code == 0
        assert {json.loads(line)["task_id"] for line in out.splitlines()} == {2}

    def test_logs_are_followed_across_another_file(self, market: Scene, tmp_path: Path) -> None:
        home = Home(tmp_path)
        home.log.write_text('{"event": "first"}\n')
        process = market.command.start("worker", "logs", "-f", "--home", tmp_path)
        assert process.stdout is not None
        try:
            assert "first" in process.stdout.readline()
            with home.log.open("a") as out:
                out.write('{"event": "second"}\n')
            assert "second" in process.stdout.readline()
            home.log.rename(home.log.with_suffix(".log.1"))
            home.log.write_text('{"event": "third"}\n')
            assert "third" in process.stdout.readline()
        finally:
            process.terminate()
            process.communicate(timeout=20)


class TestNotRunning:
    def test_status_says_so_and_tells_what_the_chain_knows(self, market: Scene) -> None:
        home = market.home("worker-2")
        found = market.worker("status", home)

        assert (found["running"], found["pid"], found["mode"]) == (False, None, "not running")
        assert found["account"]["balance_wei"] > 9_000 * ETHER
        assert found["chain"]["head"] > 0
        assert "not running: no agent runs in" in market.text("status", home)

    def test_order_to_pause_waits_for_the_next_run(self, market: Scene) -> None:
        home = market.home("worker-2")
        assert market.worker("pause", home) == {"running": False, "mode": "paused"}
        assert market.worker("status", home)["mode"] == "not running, to be paused"
        assert market.worker("resume", home) == {"running": False, "mode": "running"}
        assert not Home(home).paused.exists()

    def test_nothing_is_drained(self, market: Scene) -> None:
        home = market.home("worker-2")
        assert not market.worker("drain", home)["running"]

    def test_earnings_are_rebuilt_from_the_chain_alone(self, market: Scene, tmp_path: Path) -> None:
        home = market.home("worker-2")
        requester, worker = market.person("requester"), market.person("worker-2")
        before = requester.book().accounts.get(worker.address)
        assert before is None
        worker.send(worker.calls.register(b"p" * 32, CLASS, 0))
        task, later = requester.post(), requester.post()
        worker.train(task)
        worker.send(worker.calls.join(later, b"p" * 32))

        found = market.worker("earnings", home)
        rows = {row["task"]: row for row in found["rows"]}
        assert rows.keys() == {task, later, None}
        assert rows[task]["earned"] == ETHER // 10
        assert (rows[task]["held"], rows[later]["held"]) == (0, ETHER)
        assert rows[task]["transactions"] == 4
        assert rows[later]["earned"] == 0
        assert rows[task]["energy_j_estimate"] is None
        spent = 10_000 * ETHER - market.worker("status", home)["account"]["balance_wei"]
        assert found["total"]["fees_wei"] == spent - ETHER

        Home(home).task(task).mkdir(parents=True)
        live = {"energy_j": 7_200_000.0}
        (Home(home).task(task) / "live.json").write_text(json.dumps(live))
        code, out, _ = market.command.run(
            "worker", "earnings", "--home", home, "--csv", "--kwh-wei", "1000"
        )
        assert code == 0
        [row] = [one for one in csv.DictReader(io.StringIO(out)) if one["task"] == str(task)]
        assert row["energy_wei_estimate"] == "2000"
        assert int(row["net_wei"]) == ETHER // 10 - int(row["fees_wei"]) - 2000
        assert "energy ~7200.0 kJ" in market.text("earnings", home)
        shutil.rmtree(Home(home).task(task))
        assert market.worker("earnings", home) == found

    def test_task_is_explained_from_the_chain(self, market: Scene) -> None:
        requester = market.person("requester")
        task = requester.post(reward=ETHER // 4)
        net = market.devnet
        by_hand = (
            *("--endpoint", net.url, "--market", net.market, "--chain-id", str(net.chain_id)),
            *("--start-block", str(net.start_block)),
        )
        found = market.command.document("explain", str(task), *by_hand)
        same = market.command.document("explain", str(task), "--home", market.home("worker-2"))

        assert found["state"] == "open"
        assert found["history"][0]["event"] == "TaskPosted"
        assert found["history"][0]["time"] > 0
        assert found["next"]["call"] == "join"
        assert {move["call"] for move in found["moves"]} == {"join", "cancel", "expire"}
        [party] = found["parties"]
        assert (party["who"], party["held"]) == (requester.address, ETHER // 4)
        assert "the manifest cannot be read" in found["content"]["error"]
        assert same["history"] == found["history"]
        code, out, err = market.command.run("explain", str(task), *by_hand)
        assert (code, err) == (0, "")
        assert "anyone: take a free slot (join) until" in out

    def test_task_that_is_not_there_is_named(self, market: Scene) -> None:
        code, _, err = market.command.run("explain", "77", "--home", market.home("worker-2"))
        assert code == 2
        assert "there is no task 77" in err


class TestEnding:
    def test_running_agent_sends_what_is_withdrawn(self, market: Scene) -> None:
        requester, worker = market.person("requester"), market.person("worker-4")
        worker.send(worker.calls.register(b"p" * 32, CLASS, 0))
        worker.train(requester.post())
        # All that its key sent by hand is done.
        agent = market.agent("worker-4", "--new-journal")
        wait_until(lambda: market.worker("status", agent.home)["running"])
        wait_until(lambda: (market.worker("status", agent.home)["account"] or {}).get("credit"))
        part = market.worker("withdraw", agent.home, "--to", NOBODY, "--amount", "7")
        rest = market.worker("withdraw", agent.home, "--to", NOBODY)

        assert (part["amount"], part["to"]) == (7, to_checksum_address(NOBODY))
        assert part["block"] is not None
        assert rest["amount"] == ETHER + ETHER // 10 - 7
        balance = market.devnet.chain.request("eth_getBalance", NOBODY, "latest")
        assert int(balance, 16) == ETHER + ETHER // 10
        assert market.worker("tasks", agent.home)["tasks"][0]["state"] == "settled"

    def test_pause_survives_a_kill_and_drain_ends_in_order(self, market: Scene) -> None:
        """A bonded agent first sees to it that nobody draws it any more."""
        agent = market.agent("worker-3", **bonded())
        wait_until(lambda: market.worker("status", agent.home)["running"])
        wait_until(lambda: _account(market, agent.home)["is_in_pool"])
        market.worker("pause", agent.home)
        os.kill(agent.child.pid, signal.SIGKILL)
        agent.child.ended.wait(20)
        assert Home(agent.home).control.exists()
        assert not market.worker("status", agent.home)["running"]

        again = start_agent(market.devnet, "worker-3")
        market.parts.callback(again.stop)
        wait_until(lambda: market.worker("status", again.home)["running"])
        assert market.worker("status", again.home)["mode"] == "paused"
        assert market.worker("drain", again.home, "--wait")["mode"] == "draining"

        assert again.child.ended.wait(20)
        assert again.child.process.returncode == 0
        assert not Home(again.home).control.exists()
        worker = (
            market.person("requester")
            .book()
            .workers[str(market.devnet.accounts["worker-3"].address)]
        )
        assert worker.min_fee == 2**96 - 1
