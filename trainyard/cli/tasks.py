"""Tasks that are posted: listed, watched, cancelled, their results fetched and verified."""

import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import ExitCode, WrongUseError
from trainyard.cli.market import Site, at_market

if TYPE_CHECKING:
    from trainyard.protocol.ledger.book import Task
    from trainyard.sdk.epochs import Point
    from trainyard.sdk.market import Market
    from trainyard.sdk.showing import Show
    from trainyard.sdk.verifying import Check

_LOOK_S = 0.5
Number = Annotated[int, typer.Argument(help="The task's number.", min=1, metavar="TASK")]


@at_market
def tasks(
    site: Site,
    everybody: Annotated[
        bool, typer.Option("--all", help="Also those of others; else only one's own.")
    ] = False,
    running: Annotated[bool, typer.Option(help="Leave out those that are over.")] = False,
) -> None:
    """List tasks, the newest first.

    Examples: 'trainyard tasks', 'trainyard tasks --all --running', 'trainyard tasks --on sepolia'.
    """
    from trainyard.protocol.moves import ENDED

    with site.open() as market:
        me = None if everybody else market.owner
        if me is None and not everybody:
            raise WrongUseError("no key is named whose tasks could be meant: --all lists all")
        book = market.read().book
    found = [
        _row(number, task)
        for number, task in sorted(book.tasks.items(), reverse=True)
        if (me is None or task.requester == me) and not (running and task.state in ENDED)
    ]
    site.output.result({"tasks": found}, [_line(one) for one in found] or ["there are none"])


@at_market
def task(site: Site, number: Number) -> None:
    """Show one task: its state, its money, who is in it. 'trainyard explain' tells its story.

    Example: 'trainyard task 7 --json'.
    """
    with site.open() as market:
        book = market.read().book
    one = _known(book.tasks, number)
    document = _row(number, one) | {
        "workers": [slot.worker for slot in one.slots],
        "auditors": [seat.member for seat in one.own_panel.seats],
        "manifest": one.terms.manifest.hex(),
        "env_class": one.terms.env_class.hex(),
        "segments": one.terms.segments,
        "audits": one.terms.audits,
        "deadline": one.deadline,
        "locked_wei": str(one.locked),
    }
    lines = [f"{name.replace('_', ' '):<12} {value}" for name, value in document.items()]
    site.output.result(document, lines)


@at_market
def watch(site: Site, number: Number) -> None:
    """Follow a task until it is over, with a bar and what happens; Ctrl-C leaves it alone.

    Ends with exit code 1 if the task failed or was cancelled. Example: 'trainyard watch 7'.
    """
    from trainyard.protocol.market import TaskState
    from trainyard.sdk.following import Following
    from trainyard.sdk.showing import shown

    with site.open() as market:
        total = _steps(market, number)
        with (
            shown(f"task {number}", total or 1, 0 if site.output.as_json else 1) as show,
            closing(Following(market, number, is_seen=False, say=show.warn)) as following,
        ):
            for sight in following.sights():
                for line in sight.sentences:
                    show.say(line)
                show_points(show, sight.points)
            one = following.book.tasks[number]
    document = _row(number, one)
    site.output.result(document, [_line(document)])
    if one.state is not TaskState.SETTLED:
        raise typer.Exit(ExitCode.FAILED)


@at_market
def logs(
    site: Site,
    number: Number,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the task is over.")
    ] = False,
) -> None:
    """Print what the workers of a task say, as the market's page has it.

    With --json each line is a document of its own. Example: 'trainyard logs 7 -f'.
    """
    import json
    import sys

    from trainyard.cli.output import printable
    from trainyard.protocol.moves import ENDED
    from trainyard.sdk.feed import Feed

    with site.open() as market:
        if market.place.page is None:
            raise WrongUseError("logs come from the market's page, and none is known: name --page")
        _known_on_chain(market, number)
        feed = Feed(market.place.page, number)
        try:
            while True:
                task = market.client.task(number)
                is_over = task is None or task.state in ENDED
                for one in feed.lines():
                    stamp = time.strftime("%H:%M:%S", time.gmtime(float(one.get("time", 0))))
                    text = f"{stamp}  worker {one.get('slot')}  {one.get('text', '')}"
                    print(json.dumps(one) if site.output.as_json else printable(text))
                sys.stdout.flush()
                if is_over or not follow:
                    return
                time.sleep(_LOOK_S)
        finally:
            feed.close()


@at_market
def cancel(site: Site, number: Number) -> None:
    """Take a task back before its last slot is taken; all of the escrow is credited to you.

    Example: 'trainyard cancel 7'.
    """
    with site.open() as market:
        _known_on_chain(market, number)
        transaction = market.send(f"cancel {number}", market.calls.cancel(number))
        credit = market.client.account(market.account.address).credit
    from trainyard.protocol.telling import amount

    document = {
        "task": number,
        "state": "cancelled",
        "transaction": f"0x{transaction.hex()}",
        "credit_wei": str(credit),
    }
    site.output.result(document, [f"task {number} is cancelled; you are credited {amount(credit)}"])


@at_market
def fetch(
    site: Site,
    number: Number,
    target: Annotated[
        Path, typer.Argument(help="A .safetensors, .keras or .npy file to write.", dir_okay=False)
    ],
    receipt: Annotated[
        Path | None, typer.Option(help="Write the receipt to this file too.", dir_okay=False)
    ] = None,
) -> None:
    """Fetch the result of a settled task, verified from the root on chain to its last byte.

    A .safetensors file has the whole state, with the optimiser's; a .keras file is made of it in
    the sandbox. What a task has predicted is an .npy file.

    Example: 'trainyard fetch 7 model.keras --receipt receipt.json'.
    """
    from tempfile import TemporaryDirectory

    from trainyard.sdk.collecting import collect
    from trainyard.sdk.following import require_settled
    from trainyard.sdk.results import export_model, save_predictions, signed_receipt

    if target.suffix not in (".keras", ".safetensors", ".npy"):
        raise WrongUseError(f"{target}: a result is written as .keras, .safetensors or .npy")
    with site.open() as market, TemporaryDirectory(prefix="trainyard-fetch-") as name:
        reading = market.read()
        require_settled(number, _known(reading.book.tasks, number))
        run, state = collect(market, reading.book, number, Path(name))
        predicts = run.published.manifest.training.predicts
        if predicts != (target.suffix == ".npy"):
            what = "predicts: write .npy" if predicts else "trains: write .keras or .safetensors"
            raise WrongUseError(f"task {number} {what}")
        if predicts:
            save_predictions(run, target)
        elif target.suffix == ".keras":
            export_model(market, run, Path(name), target)
        else:
            state.save(target.absolute())
        if receipt is not None:
            signed_receipt(market, number, state.hash).save(receipt)
    document = {
        "task": number,
        "file": str(target),
        "bytes": target.stat().st_size,
        "state": state.hash.hex(),
        "result": run.result_cid,
        "root": run.result.root,
        "receipt": None if receipt is None else str(receipt),
    }
    site.output.result(
        document,
        [
            f"{target}: {document['bytes']} bytes, state {document['state']}",
            f"verified against the root {run.result.root} on chain",
        ],
    )


@at_market
def verify(
    site: Site,
    receipt: Annotated[Path, typer.Argument(help="A receipt's file.", dir_okay=False)],
    replay: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="Compute so many segments again, in the sandbox; in mode async, the score.",
        ),
    ] = 0,
) -> None:
    """Check a receipt again: signatures, transactions, the trace; audits, copies or scores.

    It takes an RPC endpoint and content, and believes nothing that the receipt says. Exit code 4
    if anything is wrong, 5 if only nobody has signed it, as on the market's page, or bits differ
    on another class of machine.

    Examples: 'trainyard verify receipt.json', 'trainyard verify receipt.json --replay 3'.
    """
    from dataclasses import asdict

    from trainyard.sdk.receipts import Receipt
    from trainyard.sdk.verifying import verify as verified

    found = Receipt.load(receipt)
    with site.open() as market:
        checks = list(verified(market, found, replay=replay))
    is_right = all(one.is_right for one in checks)
    is_open = all(one.is_right or not one.is_proven for one in checks)
    site.output.result(
        {"right": is_right, "task": found.task, "checks": [asdict(one) for one in checks]},
        [
            *(f"{_mark(one)} {one.name}: {one.message}" for one in checks),
            _conclusion(is_right=is_right, is_open=is_open),
        ],
    )
    if not is_right:
        raise typer.Exit(ExitCode.UNPROVEN if is_open else ExitCode.CORRUPT)


def show_points(show: "Show", points: Iterable["Point"]) -> None:
    """The loss with its step; of an epoch's end there are figures of validation alone."""
    for point in points:
        if "loss" in point.values:
            show.steps(point.step, {"loss": point.values["loss"]})


def _mark(check: "Check") -> str:
    if check.is_right:
        return "ok   "
    return "WRONG" if check.is_proven else "open "


def _conclusion(*, is_right: bool, is_open: bool) -> str:
    if is_right:
        return "all of it is as the receipt says"
    if is_open:
        return "nothing in it is wrong, and not all of it is proven"
    return "the receipt is not to be believed"


def _row(number: int, task: "Task") -> dict[str, Any]:
    return {
        "task": number,
        "state": task.state.name.lower(),
        "failure": None if task.failure is None else task.failure.name.lower(),
        "policy": task.terms.policy.name.lower(),
        "requester": task.requester,
        "slots": task.terms.slots,
        "reward_wei": str(task.terms.reward),
        "escrow_wei": str(task.terms.escrow),
    }


def _line(row: dict[str, Any]) -> str:
    from trainyard.protocol.telling import amount, counted

    failure = f" ({row['failure']})" if row["failure"] else ""
    return (
        f"task {row['task']:<6} {row['state']}{failure}, {row['policy']}, "
        f"{counted(row['slots'], 'slot')} at {amount(int(row['reward_wei']))}"
    )


def _known(tasks: "dict[int, Task]", number: int) -> "Task":
    if number not in tasks:
        raise WrongUseError(f"there is no task {number}: the market has {len(tasks)}")
    return tasks[number]


def _known_on_chain(market: "Market", number: int) -> None:
    if market.client.task(number) is None:
        count = market.client.task_count()
        raise WrongUseError(f"there is no task {number}: the market has {count}")


def _steps(market: "Market", number: int) -> int | None:
    from trainyard.protocol.errors import TrainyardError
    from trainyard.sdk.results import manifest_of

    try:
        return manifest_of(market, number).plan.steps
    except TrainyardError:
        return None
