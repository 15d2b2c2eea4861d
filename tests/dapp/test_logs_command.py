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


def test_lines_are_printed_as_they_come_and_all_of_them_when_it_is_over(
    yard: Yard, tmp_path: Path
) -> None:
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

        def feed(first: int) -> None:
            body = _batch(yard, worker, task, first)
            signed = worker.sign_message(encode_defunct(text=feed_text(body)))
            signature = {HEADER: f"0x{bytes(signed.signature).hex()}"}
            answer = client.post(f"/tasks/{task}/feed", content=body, headers=signature)
            assert answer.status_code == 200, answer.text

        page = str(client.base_url).rstrip("/").removesuffix("/api/v1")
        place = ("--on", yard.url, "--market", yard.market, "--start-block", str(yard.start))
        command = [*COMMAND, "logs", str(task), "--json", *place, "--page", page]
        *others, last = range(0, _LINES, _BATCH)
        for first in others:
            feed(first)
        with _started([*command, "-f"], tmp_path) as following:
            assert following.stdout is not None
            said = [following.stdout.readline() for _ in range(last)]
            # It has come to the end of what there is, and goes on with what comes.
            feed(last)
            said += [following.stdout.readline() for _ in range(_BATCH)]
            assert following.poll() is None
            yard.anvil.next_block_at(live._read("task", task).deadline)
            live.call("expire", task, by=worker.address)
            rest, complaint = following.communicate(timeout=_PATIENCE_S)
        assert (following.returncode, rest) == (0, ""), complaint
        caught_up(client, yard)
        with _started(command, tmp_path) as done:
            out, complaint = done.communicate(timeout=_PATIENCE_S)
        assert done.returncode == 0, complaint
        for lines in (said, out.splitlines()):
            texts = [json.loads(line)["text"] for line in lines]
            assert texts == [f"line {number}" for number in range(_LINES)]


def _started(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder / "config")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=dying_with_parent(),
    )


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
