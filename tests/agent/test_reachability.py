"""What the doctor says of a worker that nobody can reach, each with its fix."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import tests.quiet_web3  # noqa: F401
from tests.agent.books import CLASS, ME, NOW, STAKE, salt, situation, task
from trainyard.content.board import Board
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_server import GatewayServer
from trainyard.devnet.ports import free_port
from trainyard.protocol.market import TaskState
from worker_agent.actions import Fetch
from worker_agent.deciding import decide
from worker_agent.deciding.offers import why_not
from worker_agent.looking import situation_of
from worker_agent.reachability import examine_reach
from worker_agent.settings import ContentPlaces, Home, Settings

_CHAIN = {
    "endpoints": ["http://127.0.0.1:1"],
    "chain_id": 1337,
    "market": "0x" + "ab" * 20,
    "start_block": 0,
}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[GatewayServer]:
    content = Content(EmbeddedStore(tmp_path / "board"))
    with GatewayServer(content, board=Board()) as server:
        yield server
    content.close()


def settings(content: dict[str, Any], chain_id: int = 1337, **more: Any) -> Settings:
    chain = {**_CHAIN, "chain_id": chain_id}
    return Settings.model_validate({"chain": chain, "content": content, **more})


def found(given: Settings, *, is_running: bool = False) -> list[str]:
    problems = list(examine_reach(given, is_running=is_running))
    assert all(one.fix for one in problems)
    return [f"{'' if one.needed else 'note: '}{one.what}; {one.fix}" for one in problems]


class TestDoctor:
    def test_worker_that_serves_and_says_so_lacks_nothing(self, board: GatewayServer) -> None:
        listen = f"127.0.0.1:{free_port()}"
        assert found(settings({"listen": listen, "boards": [board.address]})) == []

    def test_neither_kubo_nor_a_gateway_is_a_problem_for_who_trains(self) -> None:
        [problem] = found(settings({}))
        assert problem.startswith("nobody can fetch what this worker has to show")
        assert "set listen, advertise and boards in [content]" in problem
        [problem] = found(settings({}, peers={"relay": "relay.example.org:7700"}))
        assert "the relay carries only what workers say to each other" in problem
        assert found(settings({"kubo": "http://127.0.0.1:1"})) == []
        # Who only audits has nothing to show.
        assert found(settings({}, policy={"concurrency": 0})) == []

    def test_gateway_that_does_not_answer_is_a_problem(self, board: GatewayServer) -> None:
        dead = f"http://127.0.0.1:{free_port()}"
        [problem] = found(settings({"advertise": dead, "boards": [board.address]}))
        assert problem.startswith(f"the gateway {dead} does not answer: ")
        listen = f"127.0.0.1:{free_port()}"
        given = {"listen": listen, "advertise": dead, "boards": [board.address]}
        [problem] = found(settings(given))
        assert problem.startswith(f"the gateway {dead} does not answer: ")

    def test_gateway_of_a_running_agent_is_asked_as_it_is(self, board: GatewayServer) -> None:
        listen = board.address.removeprefix("http://")
        given = settings({"listen": listen, "boards": [board.address]})
        assert found(given, is_running=True) == []
        # Without the agent, something else has its port.
        [problem] = found(given)
        assert problem.startswith(f"cannot listen at {board.address}")

    def test_gateway_of_somebody_else_is_no_gateway_of_ours(self, board: GatewayServer) -> None:
        listen = f"127.0.0.1:{free_port()}"
        given = {"listen": listen, "advertise": board.address, "boards": [board.address]}
        [problem] = found(settings(given))
        assert problem.startswith(f"what this worker has is not at {board.address}")

    def test_without_a_board_nobody_finds_it(self, board: GatewayServer) -> None:
        listen = f"127.0.0.1:{free_port()}"
        [problem] = found(settings({"listen": listen}))
        assert problem.startswith(
            f"nobody can find out that what this worker has is at http://{listen}"
        )
        # A gateway that everybody asks anyway has the profile as well.
        given = {"advertise": board.address, "gateways": [board.address]}
        assert found(settings(given)) == []

    def test_board_that_takes_nothing_is_a_problem(self, tmp_path: Path) -> None:
        content = Content(EmbeddedStore(tmp_path / "store"))
        with GatewayServer(content) as server:
            given = {"advertise": server.address, "boards": [server.address]}
            [problem] = found(settings(given))
        content.close()
        assert problem.startswith(f"board {server.address}: does not take blocks")

    def test_loopback_is_noted_unless_the_chain_is_on_this_machine_too(
        self, board: GatewayServer
    ) -> None:
        content = {"advertise": board.address, "boards": [board.address]}
        card, gateway = found(settings(content, chain_id=1))
        assert card.startswith("note: other workers cannot reach 127.0.0.1:0, which is on our card")
        assert gateway.startswith(f"note: other machines cannot reach {board.address}")
        relayed = settings(content, chain_id=1, peers={"relay": "relay.example.org:7000"})
        assert found(relayed) == [gateway]
        elsewhere = settings(content, chain_id=1, peers={"advertise": "worker.example.org:7700"})
        assert found(elsewhere) == [gateway]


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "gateway"),
        [
            ({}, None),
            ({"listen": "127.0.0.1:8490"}, "http://127.0.0.1:8490"),
            ({"listen": "[::1]:8490"}, "http://[::1]:8490"),
            (
                {"listen": "0.0.0.0:8490", "advertise": "https://worker.example.org"},
                "https://worker.example.org",
            ),
            ({"kubo": "http://127.0.0.1:5001", "advertise": "http://a.b:80"}, "http://a.b:80"),
        ],
    )
    def test_others_are_told_where_we_listen_or_what_we_say(
        self, given: dict[str, str], gateway: str | None
    ) -> None:
        assert ContentPlaces.model_validate(given).gateway == gateway

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"listen": "8490"}, "host:port"),
            ({"listen": "127.0.0.1"}, "host:port"),
            ({"listen": "127.0.0.1:0"}, "host:port"),
            ({"listen": "127.0.0.1:70000"}, "host:port"),
            ({"listen": "0.0.0.0:8490"}, "say with advertise"),
            ({"listen": "[::]:8490"}, "say with advertise"),
            ({"listen": "127.0.0.1:1", "kubo": "http://127.0.0.1:5001"}, "embedded store"),
            ({"advertise": "worker.example.org:8490"}, "a gateway is"),
            ({"advertise": "http://worker.example.org/path"}, "a gateway is"),
        ],
    )
    def test_what_cannot_be_is_refused(self, given: dict[str, str], said: str) -> None:
        with pytest.raises(ValidationError, match=said):
            ContentPlaces.model_validate(given)


@pytest.mark.parametrize(
    ("content", "is_served"),
    [
        ({}, False),
        ({"store": "elsewhere", "gateways": ["http://127.0.0.1:1"]}, False),
        ({"listen": "127.0.0.1:1"}, True),
        ({"advertise": "http://127.0.0.1:1"}, True),
        ({"kubo": "http://127.0.0.1:1"}, True),
    ],
)
def test_outbound_only_worker_with_a_store_of_its_own_joins_nothing(
    tmp_path: Path, content: dict[str, Any], is_served: bool
) -> None:
    """As the agent sees it by its settings: it would lose its stake for want of evidence."""
    given = settings(content, peers={"relay": "relay.example.org:7700"})
    made = task(TaskState.OPEN, workers=(), joined=0)
    home = Home(tmp_path)
    book = situation(made).book
    s = situation_of(
        *(home, given, ME, CLASS),
        book=book,
        now=NOW,
        block=1,
        purse=10 * STAKE,
        gas_price=0,
        salt=salt,
    )
    assert any(isinstance(one, Fetch) for one in decide(s)) is is_served
    assert any("a relay carries only" in one.why for one in why_not(s, 1)) is not is_served


@pytest.mark.parametrize("relay", ["relay.example.org", "relay.example.org:", ":7700", "a b:1"])
def test_relay_without_its_port_is_refused_at_the_start(relay: str) -> None:
    with pytest.raises(ValidationError, match='where a relay is is "host:port"'):
        settings({}, peers={"relay": relay})
    assert settings({}, peers={"relay": "relay.example.org:7700"}).peers.relay is not None
