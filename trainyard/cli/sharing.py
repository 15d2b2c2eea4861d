"""Options that several commands share, described once."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from trainyard.cli.failing import telling_failures

Command = Callable[..., None]


def with_options(described: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command the options of `described`, and hand it first what they come to.

    Among them is `as_json`, by which failures are told.
    """
    shared = inspect.signature(described).parameters

    def given_to(command: Command) -> Command:
        own = list(inspect.signature(command).parameters.values())[1:]

        @wraps(command)
        def run(**given: Any) -> None:
            with telling_failures(given["as_json"]):
                command(described(**{name: given.pop(name) for name in shared}), **given)

        signature = inspect.Signature(
            [
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                for parameter in (*own, *shared.values())
            ]
        )
        # Typer reads both, and would follow the wrapped function instead.
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
        vars(run).pop("__wrapped__")
        return run

    return given_to
