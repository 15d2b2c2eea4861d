"""`trainyard worker why-not`: what speaks against a task, and what would change that."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import HomeOption, Json, home_at

if TYPE_CHECKING:
    from worker_agent.settings import Home


def why_not(
    task: Annotated[int, typer.Argument(help="The task's number.", min=1)],
    home: HomeOption = None,
    as_json: Json = False,
) -> None:
    """Say all that speaks against taking a task, each with the smallest change that mends it."""
    with telling_failures(as_json):
        from worker_agent.asking import NoAgentError, ask

        place, output = home_at(home), Output(as_json)
        try:
            document = ask(place, "why-not", task=task)
        except NoAgentError as error:
            output.note(f"{error}; reading the chain")
            document = _found(place, task)
        reasons = document["reasons"]
        lines = [f"{one['why']}\n  to change that: {one['change']}" for one in reasons]
        output.result(
            document,
            [line for text in lines for line in text.splitlines()]
            or ["nothing speaks against it: it is taken as soon as there is room"],
        )


def _found(home: "Home", number: int) -> dict[str, Any]:
    from trainyard.engine.classes import find_class
    from worker_agent.deciding.offers import why_not as reasons_of
    from worker_agent.looking import look
    from worker_agent.settings import read_settings

    seen = look(home, read_settings(home))
    situation = seen.situation(bytes.fromhex(find_class().id))
    reasons = [{"why": one.why, "change": one.change} for one in reasons_of(situation, number)]
    what = {"why": "no agent runs", "change": "run 'trainyard worker run'"}
    return {"task": number, "reasons": [what, *reasons]}
