"""Answers an operator's requests for a running agent."""

import os
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog
from eth_utils.address import is_checksum_address

from trainyard.chain.errors import NoEndpointError, RevertedError
from trainyard.chain.journal import Entry, Journal, State
from trainyard.protocol.errors import PermanentError
from worker_agent.deciding.draining import under_way
from worker_agent.deciding.offers import why_not
from worker_agent.reporting import account_report, task_reports
from worker_agent.withdrawing import WITHDRAWAL

if TYPE_CHECKING:
    from worker_agent.agent import Agent

Document = dict[str, Any]


class RequestError(PermanentError):
    """A request that cannot be answered."""


class Desk:
    """Nothing here takes long, but for one transaction that is sent."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._began = time.monotonic()
        self._does: dict[str, Callable[[Document], Document]] = {
            "status": self._status,
            "tasks": self._tasks,
            "pause": self._pause,
            "resume": self._resume,
            "drain": self._drain,
            "why-not": self._why_not,
            "withdraw": self._withdraw,
            "transaction": self._transaction,
        }

    def answer(self, request: Document) -> Document:
        do = self._does.get(str(request.get("do")))
        if do is None:
            raise RequestError(f"nothing is known of that; ask one of {', '.join(self._does)}")
        return do(request)

    def _status(self, request: Document) -> Document:
        agent, sight = self._agent, self._agent.sight
        document: Document = {
            "pid": os.getpid(),
            "uptime_s": round(time.monotonic() - self._began, 1),
            "address": agent.account.address,
            "env_class": agent.env_class.hex(),
            "mode": agent.mode,
            "waits_for": under_way(agent.situation()) if agent.is_draining and sight else [],
            "children": len(agent.children),
            "chain": {
                "chain_id": agent.settings.chain.chain_id,
                "market": agent.settings.chain.market,
                "head": None,
                "head_age_s": None,
                "lag_blocks": None,
                "endpoints": agent.endpoints.states(),
                "failures": agent.failures,
                "why": agent.why,
            },
            "account": None,
            "transactions": agent.outbox.counts(),
            "tasks": [],
        }
        if sight is not None:
            me = agent.account.address
            document["chain"] |= {
                "head": sight.block,
                "head_age_s": sight.age_s,
                "lag_blocks": sight.lag,
            }
            document["account"] = account_report(sight.book, me, sight.purse)
            document["tasks"] = task_reports(
                agent.home, sight.book, me, sight.now, sight.block, ended=False
            )
        return document

    def _tasks(self, request: Document) -> Document:
        agent = self._agent
        s = agent.situation()
        return {"tasks": task_reports(agent.home, s.book, s.me, s.now, s.block, ended=True)}

    def _pause(self, request: Document) -> Document:
        self._agent.home.paused.touch(mode=0o600)
        structlog.get_logger().info("paused")
        return {"mode": self._agent.mode}

    def _resume(self, request: Document) -> Document:
        agent = self._agent
        agent.home.paused.unlink(missing_ok=True)
        agent.is_paused = agent.is_draining = False
        structlog.get_logger().info("resumed")
        agent.wake()
        return {"mode": agent.mode}

    def _drain(self, request: Document) -> Document:
        agent = self._agent
        agent.is_draining = True
        structlog.get_logger().info("draining")
        agent.wake()
        waits_for = under_way(agent.situation()) if agent.sight is not None else []
        return {"mode": agent.mode, "waits_for": waits_for}

    def _why_not(self, request: Document) -> Document:
        number = request.get("task")
        if not isinstance(number, int):
            raise RequestError("name the number of a task")
        reasons = why_not(self._agent.situation(), number)
        return {
            "task": number,
            "reasons": [{"why": one.why, "change": one.change} for one in reasons],
        }

    def _withdraw(self, request: Document) -> Document:
        agent, to, amount = self._agent, request.get("to"), request.get("amount")
        if not isinstance(to, str) or not is_checksum_address(to):
            raise RequestError(f"{to!r} is no address with its checksum")
        pending = Journal(agent.store, agent.account.address).unfinished()
        for entry in pending:
            if entry.key.startswith(WITHDRAWAL) and entry.state is State.PENDING:
                return {"amount": None, **_entry_document(entry)}
        s = agent.situation()
        credit = s.credit
        wanted = credit if amount is None else amount
        if not isinstance(wanted, int) or not 0 < wanted <= credit:
            raise RequestError(f"the credit of {s.me} is {credit}: no {wanted} can be withdrawn")
        try:
            key = WITHDRAWAL + secrets.token_hex(8)
            entry = agent.outbox.submit(key, s.calls.withdraw(to, wanted))
        except (RevertedError, NoEndpointError) as error:
            raise RequestError(f"the withdrawal was not sent: {error}") from error
        structlog.get_logger().info("withdrawing", amount=wanted, to=to)
        agent.wake()
        return {"amount": wanted, **_entry_document(entry)}

    def _transaction(self, request: Document) -> Document:
        try:
            return _entry_document(self._agent.outbox.entry(str(request.get("key"))))
        except LookupError as error:
            raise RequestError(str(error)) from error


def _entry_document(entry: Entry) -> Document:
    return {
        "key": entry.key,
        "state": entry.state.value,
        "why": entry.why,
        "transaction": f"0x{(entry.mined or entry.newest.hash).hex()}",
        "block": entry.mined_in.number if entry.mined_in else None,
    }
