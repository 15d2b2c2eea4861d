"""`trainyard worker pause`, `resume` and `drain`: what the agent is told to do."""

from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli.failing import telling_failures
from trainyard.cli.output import Output
from trainyard.protocol.errors import TransientError
from worker_agent.commands.options import HomeOption, Json, home_at

if TYPE_CHECKING:
    from worker_agent.settings import Home


class StillRunningError(TransientError):
    """The agent has more to see through than there was time for."""


def pause(home: HomeOption = None, as_json: Json = False) -> None:
    """Take nothing new, and see through what is under way. Holds until `resume`.

    Also for an agent that does not run now, or that is started again.
    """
    _order(home, as_json, "pause")


def resume(home: HomeOption = None, as_json: Json = False) -> None:
    """Take tasks again, after `pause` or `drain`."""
    _order(home, as_json, "resume")


def drain(
    home: HomeOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Come back when it has ended.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="How many seconds to wait for that at most.")
    ] = 86_400.0,
    as_json: Json = False,
) -> None:
    """See through what is under way, take nothing new, and end.

    An agent with a bond first tells the market that it wants to be drawn no more; the next run
    takes that back.
    """
    with telling_failures(as_json):
        from worker_agent.asking import NoAgentError, ask

        place, output = home_at(home), Output(as_json)
        try:
            answer = ask(place, "drain")
        except NoAgentError as error:
            document = {"running": False, "mode": "not running", "waits_for": []}
            output.result(document, [f"nothing to drain: {error}"])
            return
        waits_for = answer["waits_for"]
        if wait:
            _wait(place, timeout)
            output.result({"running": False, **answer}, ["it has ended"])
            return
        lines = ["it drains, and ends"] + [f"  after {what}" for what in waits_for]
        output.result({"running": True, **answer}, lines)


def _order(home: HomeOption, as_json: bool, what: str) -> None:
    with telling_failures(as_json):
        from worker_agent.asking import NoAgentError, ask
        from worker_agent.settings import read_settings

        place, output = home_at(home), Output(as_json)
        read_settings(place)
        try:
            document = {"running": True, **ask(place, what)}
        except NoAgentError:
            if what == "pause":
                place.paused.touch(mode=0o600)
            else:
                place.paused.unlink(missing_ok=True)
            document = {"running": False, "mode": "paused" if what == "pause" else "running"}
        whose = "the agent is" if document["running"] else "no agent runs; the next one will be"
        output.result(document, [f"{whose} {document['mode']}"])


def _wait(home: "Home", timeout_s: float) -> None:
    import time

    from trainyard.chain.keystore import address_in
    from worker_agent.locking import holder_of

    deadline = time.monotonic() + timeout_s
    while holder_of(address_in(home.keystore), home) is not None:
        if time.monotonic() >= deadline:
            raise StillRunningError(f"it has not ended after {timeout_s:.0f} s, and drains on")
        time.sleep(0.1)
