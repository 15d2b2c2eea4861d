"""`trainyard logs`, with a chain and a page that has more lines than one of its answers."""

import json
import os
import subprocess
import time
from pathlib import Path

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount

from tests.dapp.server import caught_up, dapp_for, settings_for
from tests.dapp.yard import Yard
from tests.market.command import COMMAND
from trainyard.content.lifeline import dying_with_parent
from trainyard.protocol.feeds import HEADER, feed_text
from trainyard.protocol.market import Policy

_ETHER = 10**18
_PATIENCE_S = 60.0
# More than two answers of a page hold, and than one batch of a worker.
_LINES, _BATCH = 2_100, 100


def test_all_lines_of_a_task_that_is_over_are_printed(yard: Yard, tmp_path: Path) -> None:
    worker: LocalAccount = Account.create()
    live = yard.live
    yard.anvil.request("anvil_setBalance", worker.address, hex(100 * _ETHER))
    yard.anvil.request("anvil_autoImpersonateAccount", True)
    terms = live.terms(Policy.AUDIT, 1)
    live.call("register", bytes([2]) * 32, terms.env_class, 0, by=worker.address, value=10 * _ETHER)
    task = live.post(Policy.AUDIT, 1)
    live.call("join", task, bytes([1]) * 32, [], by=worker.address)
    with dapp_for(settings_for(yard, tmp_path)) as client:
        caught_up(client, yard)
        for first in range(0, _LINES, _BATCH):
            body = _batch(yard, worker, task, first)
            signed = worker.sign_message(encode_defunct(text=feed_text(body)))
            signature = {HEADER: f"0x{bytes(signed.signature).hex()}"}
            answer = client.post(f"/tasks/{task}/feed", content=body, headers=signature)
            assert answer.status_code == 200, answer.text
        yard.anvil.next_block_at(live._read("task", task).deadline)
        live.call("expire", task, by=worker.address)
        caught_up(client, yard)

        page = str(client.base_url).rstrip("/").removesuffix("/api/v1")
        place = ("--on", yard.url, "--market", yard.market, "--start-block", str(yard.start))
        for follow in ((), ("-f",)):
            done = subprocess.run(
                [*COMMAND, "logs", str(task), *follow, "--json", *place, "--page", page],
                env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                preexec_fn=dying_with_parent(),
            )
            assert done.returncode == 0, done.stderr
            said = [json.loads(line)["text"] for line in done.stdout.splitlines()]
            assert said == [f"line {number}" for number in range(_LINES)]


def _batch(yard: Yard, worker: LocalAccount, task: int, first: int) -> bytes:
    now = time.time()
    lines = [
        {"time": now, "level": "info", "text": f"line {number}"}
        for number in range(first, first + _BATCH)
    ]
    return json.dumps(
        {
            "version": 1,
            "chain_id": yard.chain_id,
            "market": yard.market,
            "task": task,
            "worker": worker.address,
            "slot": 0,
            "sequence": int(now * 1000) + first,
            "sent_at": int(now),
            "phase": "training",
            "points": [],
            "lines": lines,
        }
    ).encode()
