"""The agent's control socket: short questions, one answer each, and nobody can hold it up."""

import json
import os
import select
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainyard.protocol.errors import PermanentError
from worker_agent.asking import AgentRefusedError, NoAgentError, ask
from worker_agent.control import address_of, control_socket
from worker_agent.serving import LONGEST_BYTES, Server
from worker_agent.settings import Home

Answer = Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def served(home: Home, answer: Answer) -> Iterator[Server]:
    """As the agent's loop does it, here in a thread of its own."""
    is_over = threading.Event()
    with control_socket(home.control, answer) as server:

        def loop() -> None:
            while not is_over.wait(0.005):
                server.serve()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield server
        finally:
            is_over.set()
            thread.join()


@contextmanager
def connected(home: Home) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        with address_of(home.control) as address:
            connection.connect(address)
        yield connection


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"asked": request}


def test_request_is_answered(home: Home) -> None:
    with served(home, echo):
        assert ask(home, "why-not", task=3) == {"asked": {"do": "why-not", "task": 3}}


def test_socket_is_its_owners_alone_and_goes_with_the_agent(home: Home) -> None:
    with served(home, echo):
        assert stat.S_IMODE(home.control.stat().st_mode) == 0o600
    assert not home.control.exists()
    with pytest.raises(NoAgentError, match="no agent runs in"):
        ask(home, "status")


def test_what_a_killed_agent_left_is_replaced(home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as left, address_of(home.control) as address:
        left.bind(address)
    with pytest.raises(NoAgentError, match="no agent runs in"):
        ask(home, "status")
    with served(home, echo):
        assert ask(home, "status")["asked"] == {"do": "status"}


def test_folder_may_be_deeper_than_an_address_is_long(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with served(Home(deep), echo):
        assert ask(Home(deep), "status")["asked"] == {"do": "status"}
    assert os.listdir(deep) == []


def test_answer_larger_than_any_buffer_arrives_whole(home: Home) -> None:
    with served(home, lambda request: {"much": "x" * 4_000_000}):
        assert len(ask(home, "tasks")["much"]) == 4_000_000


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"nonsense\n", "that is no request"),
        (b"[1]\n", "a JSON object"),
        (b"[" * 5000 + b"\n", "that is no request"),
        (b"\xff\n", "that is no request"),
    ],
)
def test_nonsense_is_told_so(home: Home, line: bytes, told: str) -> None:
    with served(home, echo), connected(home) as connection:
        connection.sendall(line)
        assert told in json.loads(connection.makefile().readline())["error"]


def test_refusal_and_failure_are_told_and_the_agent_goes_on(home: Home) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "refuse":
            raise PermanentError("that is not to be had")
        if request["do"] == "fail":
            raise ZeroDivisionError("nobody thought of that")
        return {"well": True}

    with served(home, answer):
        with pytest.raises(AgentRefusedError, match="that is not to be had"):
            ask(home, "refuse")
        with pytest.raises(AgentRefusedError, match="nobody thought of that; see its log"):
            ask(home, "fail")
        assert ask(home, "status") == {"well": True}


def test_request_that_has_no_end_is_cut_off(home: Home) -> None:
    with served(home, echo), connected(home) as connection:
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            connection.sendall(b"x" * (LONGEST_BYTES * 1000))
        assert ask(home, "status")["asked"] == {"do": "status"}


def test_who_connects_and_says_nothing_holds_nobody_up(home: Home) -> None:
    with served(home, echo):
        idle = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(50)]
        try:
            for one in idle:
                with address_of(home.control) as address:
                    one.connect(address)
                one.settimeout(20)
            assert ask(home, "status")["asked"] == {"do": "status"}
            # The first had to make room.
            assert idle[0].recv(1) == b""
        finally:
            for one in idle:
                one.close()


def test_who_takes_no_answer_is_let_go(home: Home) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with address_of(home.control) as address:
        listener.bind(address)
    server = Server(listener, b"\n", lambda line: b"x" * 10_000_000, patience_s=0.05)
    try:
        with connected(home) as connection:
            connection.sendall(b"{}\n")
            deadline = time.monotonic() + 20
            while server.count == 0:
                server.serve()
                assert time.monotonic() < deadline
            while server.count:
                server.serve()
                assert time.monotonic() < deadline
            assert len(connection.recv(1)) == 1
    finally:
        server.close()


def test_one_step_of_service_never_waits(home: Home) -> None:
    """With a client that sent half a request, and one that sent none."""
    with control_socket(home.control, echo) as server, connected(home) as half, connected(home):
        half.sendall(b'{"do": ')
        for _ in range(10):
            server.serve()
        half.sendall(b'"status"}\n')
        while not select_one(half):
            server.serve()
        assert json.loads(half.makefile().readline()) == {"asked": {"do": "status"}}


def select_one(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0.01)[0])
