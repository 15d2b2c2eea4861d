"""Plays the demo: a devnet, agents, one task, and what became of everybody's money."""

import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from trainyard.content.settings import open_content
from trainyard.demo.cast import (
    COPY,
    REQUESTER,
    WHAT_IT_DOES,
    WITHHOLD,
    Cast,
    assembled,
    cheater,
    workers_with,
)
from trainyard.demo.reporting import Purses, conclude, receipt_lines, report
from trainyard.demo.stage import Stage
from trainyard.demo.task import add_manifest, terms_of
from trainyard.demo.watching import Requester
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options
from trainyard.engine.classes import find_class
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.protocol.telling import sentence, task_of
from trainyard.sdk.receipts import Receipt, receipt_of

_LOOK_EVERY_S = 0.25
_LONGEST_S = 900.0
_ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
_TASK = 1
_GATHER_S = 120.0
# Ended by whoever answers last. Only a cheat that says nothing lets them run out: then they are as
# short as honest agents on a slow machine can keep.
_WINDOWS = {"audit_for": 600, "answer_for": 120}
_SHORTER = {COPY: {"answer_for": 40}, WITHHOLD: {"audit_for": 60, "answer_for": 30}}


class DemoError(PermanentError):
    """The demo did not end as it should."""


def play(
    console: Console,
    *,
    chain: str,
    cheat: str | None,
    receipt: Path,
    stay: bool = False,
) -> None:
    """Play it to its end; raises if the market did not do what it is for.

    With `stay` the page goes on until Ctrl-C, so that somebody can look at it.
    """
    began = time.monotonic()
    # What each agent is set to stands in the cast; a devnet's own settings would go before it.
    options = Options(
        chain="anvil" if chain == "anvil" else "ganache", agent_settings=(), dapp=True
    )
    console.rule("[bold]Trainyard: a market for verified training", style="cyan")
    with (
        TemporaryDirectory(prefix="trainyard-demo-") as name,
        Devnet(options=options) as devnet,
        Stage(console, began, time.monotonic) as stage,
    ):
        stage.say(f"{chain} runs at {devnet.url}, the market is at {devnet.market}")
        with assembled(devnet, cheat=cheat) as cast:
            requester = Requester(devnet, devnet.accounts["requester"], Path(name) / "demo.sqlite")
            try:
                _play(devnet, cast, requester, stage, cheat, receipt)
            finally:
                requester.close()
        _show_page(console, devnet, stay=stay)


def _play(
    devnet: Devnet,
    cast: Cast,
    requester: Requester,
    stage: Stage,
    cheat: str | None,
    receipt: Path,
) -> None:
    stage.say(f"agents run for {', '.join(cast.agents)}")
    if cheat is not None:
        stage.say(f"[red]{cheater(cheat)} cheats: it {WHAT_IT_DOES[cheat]}[/red]")
    content = open_content(devnet.content_settings)
    manifest = add_manifest(content, workers=workers_with(cheat))
    content.close()
    stage.say(
        f"MNIST and the manifest of LeNet-5 are content: {manifest.plan.steps} steps in "
        f"{manifest.plan.segments} segments"
    )
    _wait_for_register(cast, requester)
    before = Purses.of(cast, requester)
    windows = _WINDOWS | _SHORTER.get(cheat or "", {})
    terms = terms_of(manifest, bytes.fromhex(find_class().id), **windows)
    requester.send("post", requester.calls.post(terms, value=terms.escrow))
    task = _follow(cast, requester, stage)
    after = Purses.of(cast, requester)
    report(stage.console, task, cast, requester, before, after)
    signed = _receipt(devnet, requester)
    signed.save(receipt)
    for line in receipt_lines(signed, receipt, cast.name):
        stage.console.print(line, soft_wrap=True)
    _judge(task, cast, requester, cheat)
    _see_to_the_honest(cast, before, after, cheat)
    stage.console.print(conclude(task, cast, before, after, cheat))


def _receipt(devnet: Devnet, requester: Requester) -> Receipt:
    """Signed as by `trainyard.fit`: by who paid."""
    found = receipt_of(
        requester.seen,
        requester.book,
        _TASK,
        chain_id=devnet.chain_id,
        market=devnet.market,
        start_block=devnet.start_block,
    )
    return found.signed(requester.account)


def _show_page(console: Console, devnet: Devnet, *, stay: bool) -> None:
    """Where the task is shown with its whole life."""
    console.print(f"The page of the task: {devnet.dapp}/tasks/{_TASK}", soft_wrap=True)
    if stay:
        console.print("It is there until Ctrl-C.")
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(_LOOK_EVERY_S)


def _wait_for_register(cast: Cast, requester: Requester) -> None:
    """Until all are registered, and those with a bond are in the pool."""
    wanted = {address for name, address in cast.addresses.items() if name != REQUESTER}
    bonded = {cast.addresses[name] for name in cast.agents if name not in cast.trainers}
    deadline = time.monotonic() + _GATHER_S
    while True:
        list(requester.look())
        workers = requester.book.workers
        in_pool = {who for who, one in workers.items() if one.pool_index}
        if wanted <= workers.keys() and bonded <= in_pool:
            return
        for agent in cast.agents.values():
            if agent.child.ended.is_set():
                raise DemoError(agent.child.epitaph())
        if time.monotonic() > deadline:
            raise DemoError(f"not all agents registered within {_GATHER_S:.0f} s")
        time.sleep(_LOOK_EVERY_S)


def _follow(cast: Cast, requester: Requester, stage: Stage) -> Task:
    deadline = time.monotonic() + _LONGEST_S
    while time.monotonic() < deadline:
        for seen in requester.look():
            told = sentence(seen.event, cast.name)
            if told is not None and task_of(seen.event) == _TASK:
                stage.say(told)
        task = requester.book.tasks.get(_TASK)
        stage.show(requester, cast, _TASK)
        is_quiet = task is not None and not task.own_panel.disputes
        if task is not None and task.state in _ENDED and is_quiet:
            return task
        time.sleep(_LOOK_EVERY_S)
    raise DemoError(f"the task was not over after {_LONGEST_S:.0f} s")


def _see_to_the_honest(cast: Cast, before: Purses, after: Purses, cheat: str | None) -> None:
    """Nobody but a cheat may lose anything."""
    honest = [name for name in cast.agents if cheat is None or name != cheater(cheat)]
    harmed = [name for name in honest if after.change(before, name) < 0]
    if harmed:
        raise DemoError(
            f"{' and '.join(harmed)} did nothing wrong and lost money: perhaps this machine is too "
            "busy to act in time; run it again when it is not"
        )


def _judge(task: Task, cast: Cast, requester: Requester, cheat: str | None) -> None:
    """A market that pays for a cheat, or does not pay for work, is no market."""
    expected = TaskState.SETTLED if cheat in (None, COPY) else TaskState.FAILED
    if task.state is not expected:
        raise DemoError(f"the task ended as {task.state.name}, and not as {expected.name}")
    if cheat is not None:
        record = requester.book.account(cast.addresses[cheater(cheat)])
        if not record.failed + record.audits_wrong:
            raise DemoError(f"{cheater(cheat)} cheated, and it does not show in its record")
