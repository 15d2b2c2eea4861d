"""The line before the engine."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import Context, copy_context

import pytest

from dapp.errors import ApiError
from dapp.reaching import MOST_OF_ONE
from dapp.security.clients import asking
from dapp.services import Turns
from tests.dapp.server import wait_for


def of_client(address: str) -> Context:
    context = copy_context()
    context.run(asking.set, address)
    return context


def test_one_client_does_not_take_the_whole_line() -> None:
    turns, places = Turns(MOST_OF_ONE + 1, patience_s=30.0), MOST_OF_ONE + 2

    def take_turn() -> None:
        with turns.taken():
            pass

    with ThreadPoolExecutor(places) as waiting, ExitStack() as first:
        of_client("192.0.2.1").run(first.enter_context, turns.taken())
        others = [
            waiting.submit(of_client("192.0.2.1").run, take_turn) for _ in range(MOST_OF_ONE - 1)
        ]
        wait_for(lambda: turns._line._value == places - MOST_OF_ONE, "who waits")

        with pytest.raises(ApiError, match="for you already") as refused:
            of_client("192.0.2.1").run(take_turn)

        assert (refused.value.status, refused.value.retry_after_s) == (503, 15.0)
        others.append(waiting.submit(of_client("192.0.2.2").run, take_turn))
        wait_for(lambda: turns._line._value == places - MOST_OF_ONE - 1, "the other client")
        first.close()
        for one in others:
            one.result(30)
    of_client("192.0.2.1").run(take_turn)
