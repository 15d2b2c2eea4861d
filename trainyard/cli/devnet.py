"""`trainyard devnet`: a whole market on this machine, which runs until it is told to end."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import EXIT_CODES_HELP, telling_failures
from trainyard.cli.output import Output

if TYPE_CHECKING:
    from trainyard.devnet.control import Status
    from trainyard.devnet.options import Options

devnet = typer.Typer(
    name="devnet",
    help="A whole market on this machine: a chain, the contracts, content and funded accounts.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)


class ChainName(StrEnum):
    GANACHE = "ganache"
    ANVIL = "anvil"


class ContentName(StrEnum):
    EMBEDDED = "embedded"
    KUBO = "kubo"


Folder = Annotated[
    Path | None,
    typer.Option(
        help="Where it keeps everything. Else trainyard/devnet in XDG_STATE_HOME.", file_okay=False
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
]


@devnet.command(epilog=EXIT_CODES_HELP)
def up(
    folder: Folder = None,
    chain: Annotated[
        ChainName | None, typer.Option(help="The chain's program; ganache at first.")
    ] = None,
    content: Annotated[
        ContentName | None, typer.Option(help="What keeps content; embedded at first.")
    ] = None,
    agents: Annotated[
        int | None, typer.Option(min=0, max=64, help="How many workers' agents to run.")
    ] = None,
    block_time: Annotated[
        int | None,
        typer.Option(min=0, help="Seconds between blocks; 0 is one block per transaction."),
    ] = None,
    dapp: Annotated[
        bool | None,
        typer.Option("--dapp/--no-dapp", help="Whether to serve the page; yes at first."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Start it, and come back when it is there, with its agents on the market.

    It goes on when the terminal is closed.

    What is not said is as it was the last time in this folder. The chain goes on where it ended.

    Examples: 'trainyard devnet up', 'trainyard devnet up --agents 4 --chain anvil'.
    """
    with telling_failures(as_json):
        from trainyard.devnet.control import bring_up, status_of

        place, output = _folder(folder), Output(as_json)
        given = {
            "chain": chain and chain.value,
            "content": content and content.value,
            "agents": agents,
            "block_time_s": block_time,
            "dapp": dapp,
        }
        options = _options(place, {name: v for name, v in given.items() if v is not None})
        output.note("starting, which takes some seconds")
        for name, log in bring_up(place, options, output.note).items():
            output.tell(f"{name} is not on the market yet: {log} tells what it does")
        _show(output, status_of(place), place)


@devnet.command(epilog=EXIT_CODES_HELP)
def status(folder: Folder = None, as_json: Json = False) -> None:
    """Say what runs, and where. Exit code 0 whether it runs or not; ask --json for `running`.

    Example: 'trainyard devnet status --json'.
    """
    with telling_failures(as_json):
        from trainyard.devnet.control import status_of

        place = _folder(folder)
        _show(Output(as_json), status_of(place), place)


@devnet.command(epilog=EXIT_CODES_HELP)
def down(folder: Folder = None, as_json: Json = False) -> None:
    """End everything; the chain and the content are kept for the next time.

    Example: 'trainyard devnet down'.
    """
    with telling_failures(as_json):
        from trainyard.devnet.control import take_down

        place = _folder(folder)
        ended = take_down(place)
        Output(as_json).result(
            {"ended": ended}, [f"{'ended' if ended else 'nothing runs'} in {place}"]
        )


@devnet.command(epilog=EXIT_CODES_HELP)
def reset(folder: Folder = None, as_json: Json = False) -> None:
    """End everything and forget it: the chain, the accounts, the content and the agents.

    Example: 'trainyard devnet reset'.
    """
    with telling_failures(as_json):
        from trainyard.devnet.control import forget

        place = _folder(folder)
        forgotten = forget(place)
        Output(as_json).result(
            {"forgotten": forgotten},
            [f"{'forgotten' if forgotten else 'there is no devnet'}: {place}"],
        )


def _folder(given: Path | None) -> Path:
    from trainyard.devnet.place import default_folder

    return (given or default_folder()).expanduser().absolute()


def _options(folder: Path, given: dict[str, Any]) -> "Options":
    from trainyard.devnet.options import Options
    from trainyard.devnet.place import Place
    from trainyard.devnet.record import Record

    record = Record.read(Place(folder))
    return replace(record.options if record else Options(dapp=True), **given)


def _show(output: Output, status: "Status", folder: Path) -> None:
    document = _document(status, folder)
    output.result(document, _lines(document))


def _document(status: "Status", folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        "running": status.running is not None,
        "state": "down" if status.pid is None else "up" if status.running else "changing",
        "folder": str(folder),
    }
    if status.running is None or status.record is None or status.record.market is None:
        return found
    from trainyard.devnet.options import CHAIN_ID

    market, alive = status.record.market, status.alive
    return found | {
        "chain": status.record.options.chain,
        "url": status.running.url,
        "chain_id": CHAIN_ID,
        "market": market.address,
        "start_block": market.start_block,
        "block_time_s": status.record.options.block_time_s,
        "content": status.record.options.content,
        "gateway": status.running.gateway,
        "kubo": status.running.kubo,
        "store": None if status.running.kubo else str(folder / "content"),
        "dapp": status.running.dapp,
        "mnemonic_file": str(folder / "mnemonic"),
        "accounts": status.record.people,
        "processes": {
            name: {"pid": pid, "alive": alive[name]}
            for name, (pid, _) in status.running.processes.items()
        },
    }


def _lines(document: dict[str, Any]) -> list[str]:
    if not document["running"]:
        what = {"down": "nothing runs", "changing": "it is coming up or going down"}
        return [f"{what[document['state']]} in {document['folder']}"]
    plain = [
        f"{name.replace('_', ' '):<14} {value}"
        for name, value in document.items()
        if not isinstance(value, dict) and value is not None and name not in ("running", "state")
    ]
    people = [f"{name:<14} {address}" for name, address in document["accounts"].items()]
    processes = [
        f"{name:<14} {'pid ' + str(one['pid']) if one['alive'] else 'ENDED, see its log'}"
        for name, one in document["processes"].items()
    ]
    return [*plain, "", *people, "", *processes]
