"""A task of the ledger as JSON and back, so that rows hold all of it."""

import json
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Dispute, Panel, Seat, Slot, Task
from trainyard.protocol.market import (
    DisputeState,
    Failure,
    Policy,
    SeatState,
    TaskState,
    Terms,
)


def encode_task(task: Task) -> str:
    document = {one.name: _plain(getattr(task, one.name)) for one in fields(task)}
    document["panels"] = [[*key, _plain(panel)] for key, panel in sorted(task.panels.items())]
    document["disputes"] = [[key, _plain(one)] for key, one in sorted(task.disputes.items())]
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def decode_task(text: str) -> Task:
    found = json.loads(text)
    terms = found["terms"]
    for name in ("manifest", "env_class", "allow_list"):
        terms[name] = bytes.fromhex(terms[name])
    failure = found["failure"]
    return Task(
        **found
        | {
            "terms": Terms(**terms | {"policy": Policy(terms["policy"])}),
            "state": TaskState(found["state"]),
            "failure": None if failure is None else Failure(failure),
            "slots": [_slot(one) for one in found["slots"]],
            "panels": {(segment, round_): _panel(one) for segment, round_, one in found["panels"]},
            "disputes": {segment: _dispute(one) for segment, one in found["disputes"]},
        }
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, IntEnum):
        return int(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, dict) else value


def _slot(found: dict[str, Any]) -> Slot:
    claim = found["claim"]
    return Slot(
        **found
        | {
            "digest": bytes.fromhex(found["digest"]),
            "peer_card": bytes.fromhex(found["peer_card"]),
            "claim": None
            if claim is None
            else Claim(**{name: bytes.fromhex(one) for name, one in claim.items()}),
            "shares": tuple(found["shares"]),
        }
    )


def _panel(found: dict[str, Any]) -> Panel:
    return Panel(
        **found
        | {"seed": bytes.fromhex(found["seed"]), "seats": [_seat(one) for one in found["seats"]]}
    )


def _seat(found: dict[str, Any]) -> Seat:
    return Seat(
        **found
        | {
            "state": SeatState(found["state"]),
            "answer": bytes.fromhex(found["answer"]),
            "opened": bytes.fromhex(found["opened"]),
            "scores": tuple(found["scores"]),
        }
    )


def _dispute(found: dict[str, Any]) -> Dispute:
    return Dispute(
        **found
        | {
            "state": DisputeState(found["state"]),
            "claimed": bytes.fromhex(found["claimed"]),
            "truth": bytes.fromhex(found["truth"]),
        }
    )
