"""`trainyard explain`: what became of a task, from the chain and its content alone."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from trainyard.cli.output import Output

if TYPE_CHECKING:
    from trainyard.chain.endpoints import Endpoints
    from trainyard.content.settings import ContentSettings


@dataclass(frozen=True, slots=True)
class _Market:
    endpoints: list[str]
    chain_id: int
    address: str
    start_block: int
    content: "ContentSettings"


def explain(
    task: Annotated[int, typer.Argument(help="The task's number.", min=1)],
    endpoint: Annotated[
        list[str] | None, typer.Option(help="A JSON-RPC endpoint of the chain; repeatable.")
    ] = None,
    market: Annotated[str | None, typer.Option(help="The market's address.")] = None,
    chain_id: Annotated[int | None, typer.Option(min=1, help="The chain's id.")] = None,
    start_block: Annotated[
        int | None, typer.Option(min=0, help="The block in which the market was deployed.")
    ] = None,
    gateway: Annotated[
        list[str] | None, typer.Option(help="Fetch the manifest from this gateway; repeatable.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="Take all of that from this agent's settings.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Take all of that from the devnet in this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
    ] = False,
) -> None:
    """Say what happened in a task, who must move next and by when, and what each can claim.

    Without --endpoint, --market, --chain-id and --start-block, or --home, it is about the devnet
    that runs on this machine.
    """
    with telling_failures(as_json):
        given = (endpoint, market, chain_id, start_block)
        if any(one is not None for one in given):
            place = _given(endpoint, market, chain_id, start_block, gateway or [])
        else:
            place = _of_agent(home) if home is not None else _of_devnet(folder)
        document = _explained(place, task)
        Output(as_json).result(document, _lines(document))


def _given(
    endpoint: list[str] | None,
    market: str | None,
    chain_id: int | None,
    start_block: int | None,
    gateways: list[str],
) -> _Market:
    if endpoint is None or market is None or chain_id is None or start_block is None:
        raise WrongUseError("--endpoint, --market, --chain-id and --start-block go together")
    from trainyard.content.settings import ContentSettings

    content = ContentSettings()
    if gateways:
        content = content.model_copy(update={"gateways": ",".join(gateways)})
    return _Market(endpoint, chain_id, market, start_block, content)


def _of_devnet(folder: Path | None) -> _Market:
    from trainyard.devnet.devnet import Devnet
    from trainyard.devnet.place import default_folder

    net = Devnet.load((folder or default_folder()).expanduser().absolute())
    return _Market([net.url], net.chain_id, net.market, net.start_block, net.content_settings)


def _of_agent(home: Path) -> _Market:
    from trainyard.content.settings import ContentSettings
    from worker_agent.settings import Home, read_settings

    place = Home(home.expanduser().absolute())
    settings = read_settings(place)
    chain, kept = settings.chain, settings.content
    content = ContentSettings(
        store=kept.store or place.content_store, kubo=kept.kubo, gateways=",".join(kept.gateways)
    )
    return _Market(list(chain.endpoints), chain.chain_id, chain.market, chain.start_block, content)


def _explained(place: _Market, number: int) -> dict[str, Any]:
    import time

    from trainyard.chain.endpoints import Endpoints
    from trainyard.chain.reading import read_market
    from trainyard.protocol.explaining import explain as explained

    endpoints = Endpoints(place.endpoints, chain_id=place.chain_id)
    endpoints.check()
    reading = read_market(endpoints, place.address, place.start_block)
    if number not in reading.book.tasks:
        count = len(reading.book.tasks)
        raise WrongUseError(f"there is no task {number}: the market at {place.address} has {count}")
    seen = [one for one in reading.events if one.event.args.get("id") == number]
    now = max(reading.head.timestamp, int(time.time()))
    document = explained(reading.book, number, _told(endpoints, seen), now, reading.head.ref.number)
    digest = reading.book.tasks[number].terms.manifest
    return {"market": place.address, **document, "content": _content(place, digest)}


def _told(endpoints: "Endpoints", seen: list[Any]) -> list[Any]:
    from trainyard.chain.reading import times_of
    from trainyard.protocol.explaining import Told

    times = times_of(endpoints, {one.block.number for one in seen})
    return [
        Told(one.event, one.block.number, times[one.block.number], one.transaction) for one in seen
    ]


def _content(place: _Market, digest: bytes) -> dict[str, Any]:
    """What the manifest says is to be trained; or why that cannot be told."""
    from trainyard.content.cid import Cid, Codec
    from trainyard.content.settings import open_content
    from trainyard.protocol.errors import TrainyardError
    from trainyard.protocol.manifest import Manifest

    content = open_content(place.content)
    try:
        manifest = Manifest.parse(content.fetcher.get(Cid(Codec.RAW, digest)).block)
    except TrainyardError as error:
        return {"error": f"the manifest cannot be read: {error}"}
    finally:
        content.close()
    training = manifest.training
    return {
        "mode": training.mode,
        "workers": training.workers,
        "parameters": manifest.model.parameters,
        "steps": manifest.plan.steps,
        "segments": manifest.plan.segments,
        "batch": training.batch,
    }


def _lines(document: dict[str, Any]) -> list[str]:
    from trainyard.protocol.explaining import is_over

    failure = f" ({document['failure']})" if document["failure"] else ""
    lines = [
        f"Task {document['task']} is {document['state']}{failure}; policy {document['policy']}.",
        _about(document["content"]),
        "",
        "What happened (all times are UTC)",
        *(
            f"  block {one['block']:<8} {_moment(one['time'])}  {one['what']}"
            for one in document["history"]
        ),
        "",
        "Who moves next",
        *([f"  {_move(document, one)}" for one in document["moves"]] or ["  nobody: it is over"]),
        "",
        "Who has what",
        *(f"  {_part(document, one)}" for one in document["parties"]),
    ]
    if is_over(document) and document["moves"]:
        lines.append("It is over; what is left to do only sets bonds free.")
    return lines


def _about(content: dict[str, Any]) -> str:
    if "error" in content:
        return str(content["error"])
    from trainyard.protocol.telling import counted

    return (
        f"It trains {content['parameters']:,} parameters by {counted(content['workers'], 'worker')}"
        f", mode {content['mode']}: {counted(content['steps'], 'step')} of "
        f"{counted(content['batch'], 'record')} in {counted(content['segments'], 'segment')}."
    )


def _move(document: dict[str, Any], move: dict[str, Any]) -> str:
    from trainyard.protocol.explaining import namer

    name = namer(document["names"])
    who = ", ".join(map(name, move["who"])) or "anyone"
    since = f" from {_moment(move['since'])} on" if move["since"] else ""
    by = f" until {_moment(move['by'])}" if move["by"] else ""
    return f"{who}: {move['what']} ({move['call']}){since}{by}"


def _part(document: dict[str, Any], part: dict[str, Any]) -> str:
    from trainyard.protocol.telling import amount

    lost = f", {amount(part['lost'])} are lost" if part["lost"] else ""
    return (
        f"{part['who']} ({part['role']}): the task holds {amount(part['held'])} and has credited "
        f"{amount(part['credited'])}{lost}; can claim: {part['claim']}"
    )


def _moment(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S}"
