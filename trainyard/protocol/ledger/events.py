"""Decoded events, as the handlers take them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# Changes the book by one event; called with the event's arguments by name.
Handler = Callable[..., None]

# Arguments whose name Python uses itself.
_RENAMED = {"id": "task_id", "round": "round_"}


class UnknownEventError(LookupError):
    """The market emitted something that this version knows nothing of."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event as its ABI decodes it: structs are mappings, words are bytes, addresses strings."""

    name: str
    args: Mapping[str, Any]


def python_name(solidity_name: str) -> str:
    """`minAudits` as Python spells it: `min_audits`."""
    return re.sub("[A-Z]", lambda capital: "_" + capital[0].lower(), solidity_name)


def argument_name(solidity_name: str) -> str:
    """The name of the handler's parameter for an argument of an event."""
    return _RENAMED.get(solidity_name) or python_name(solidity_name)


def struct_fields(struct: Mapping[str, Any]) -> dict[str, Any]:
    return {python_name(name): value for name, value in struct.items()}
