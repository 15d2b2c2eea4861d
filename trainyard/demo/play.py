"""Plays the demo: a devnet, agents, one task, and what became of everybody's money."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from trainyard.content.settings import open_content
from trainyard.demo.cast import COPY, REQUESTER, Cast, assembled, cheater, workers_with
from trainyard.demo.receipt import receipt_of
from trainyard.demo.stage import Stage, live_of
from trainyard.demo.task import add_manifest, terms_of
from trainyard.demo.watching import Requester
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options
from trainyard.engine.classes import find_class
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import BURN_ADDRESS, SeatState, TaskState
from trainyard.protocol.telling import amount, sentence, task_of

_LOOK_EVERY_S = 0.25
_LONGEST_S = 900.0
_ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
_TASK = 1
_GATHER_S = 120.0


class DemoError(PermanentError):
    """The demo did not end as it should."""


def play(console: Console, *, chain: str, cheat: str | None, receipt: Path | None) -> None:
    """Play it to its end; raises if the market did not do what it is for."""
    began = time.monotonic()
    options = Options(chain="anvil" if chain == "anvil" else "ganache")
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


def _play(
    devnet: Devnet,
    cast: Cast,
    requester: Requester,
    stage: Stage,
    cheat: str | None,
    receipt: Path | None,
) -> None:
    stage.say(
        f"agents run for {', '.join(cast.agents)}" + (f"; Walt cheats: {cheat}" * bool(cheat))
    )
    content = open_content(devnet.content_settings)
    manifest = add_manifest(content, workers=workers_with(cheat))
    content.close()
    stage.say(
        f"MNIST and the manifest of LeNet-5 are content: {manifest.plan.steps} steps in "
        f"{manifest.plan.segments} segments"
    )
    _wait_for_register(cast, requester)
    before = {name: requester.wealth(address) for name, address in cast.addresses.items()}
    burned = _credit(requester, BURN_ADDRESS)
    terms = terms_of(manifest, bytes.fromhex(find_class().id))
    requester.send("post", requester.calls.post(terms, value=terms.escrow))
    task = _follow(cast, requester, stage)
    _report(stage.console, task, cast, requester, before, _credit(requester, BURN_ADDRESS) - burned)
    document = receipt_of(requester.seen, requester.book, _TASK, devnet.market, devnet.chain_id)
    if receipt is not None:
        receipt.write_text(json.dumps(document, indent=2) + "\n")
        stage.console.print(f"the receipt is in {receipt}")
    _judge(task, cast, requester, cheat)


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
        stage.show(task, cast, _TASK)
        is_quiet = task is not None and not task.own_panel.disputes
        if task is not None and task.state in _ENDED and is_quiet:
            return task
        time.sleep(_LOOK_EVERY_S)
    raise DemoError(f"the task was not over after {_LONGEST_S:.0f} s")


def _report(
    console: Console,
    task: Task,
    cast: Cast,
    requester: Requester,
    before: dict[str, int],
    burned: int,
) -> None:
    console.print()
    for name in cast.trainers:
        tested = live_of(cast.agents[name].home, _TASK).get("tested")
        if tested and task.state is TaskState.SETTLED:
            console.print(f"[bold]accuracy on the test images: {tested['accuracy']:.4f}[/bold]")
    console.print(_verdicts(task, cast))
    hashes = {seen.transaction for seen in requester.seen if task_of(seen.event) == _TASK}
    console.print(_money(cast, requester, before, burned, hashes))


def _verdicts(task: Task, cast: Cast) -> Table:
    table = Table(title="What was checked", title_justify="left")
    for column in ("segment", "by", "as", "found", "claimed", "verdict"):
        table.add_column(column)
    for (_, round_), panel in sorted(task.panels.items()):
        for seat in panel.seats:
            claimed = seat.opened
            if round_:
                claimed = task.disputes[seat.segment].claimed
            is_known = seat.state is not SeatState.DRAWN and any(seat.answer)
            verdict = "as claimed" if seat.answer == claimed else "[red]NOT as claimed"
            if not any(claimed):
                verdict = "not opened"
            table.add_row(
                str(seat.segment),
                cast.name(seat.member),
                "referee" if round_ else "auditor",
                f"{seat.answer.hex()[:12]}…" if is_known else "nothing",
                f"{claimed.hex()[:12]}…" if any(claimed) else "",
                verdict if is_known else "no answer",
            )
    return table


def _money(
    cast: Cast, requester: Requester, before: dict[str, int], burned: int, hashes: set[bytes]
) -> Table:
    used = requester.gas(hashes)
    table = Table(title="Who has what", title_justify="left")
    for column in ("", "before", "after", "change without fees", "gas", "fees"):
        table.add_column(column, justify="right" if column else "left")
    for name, address in cast.addresses.items():
        gas, cost = used.get(address.lower(), (0, 0))
        after = requester.wealth(address)
        change = after - before[name] + cost
        table.add_row(
            name, amount(before[name]), amount(after), amount(change), f"{gas:,}", amount(cost)
        )
    table.add_row("burned", "", "", amount(burned), "", "")
    return table


def _credit(requester: Requester, address: str) -> int:
    account = requester.book.accounts.get(address)
    return 0 if account is None else account.credit


def _judge(task: Task, cast: Cast, requester: Requester, cheat: str | None) -> None:
    """A market that pays for a cheat, or does not pay for work, is no market."""
    expected = TaskState.SETTLED if cheat in (None, COPY) else TaskState.FAILED
    if task.state is not expected:
        raise DemoError(f"the task ended as {task.state.name}, and not as {expected.name}")
    if cheat is not None:
        record = requester.book.account(cast.addresses[cheater(cheat)])
        if not record.failed + record.audits_wrong:
            raise DemoError(f"{cheater(cheat)} cheated, and it does not show in its record")
