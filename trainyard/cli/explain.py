"""`trainyard explain`: what became of a task, from the chain and its content alone."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from trainyard.cli.market import Site
from trainyard.cli.output import Output

if TYPE_CHECKING:
    from trainyard.chain.cursor import Seen
    from trainyard.chain.endpoints import Endpoints
    from trainyard.content.content import Content
    from trainyard.content.settings import ContentSettings
    from trainyard.protocol.ledger import Book


@dataclass(frozen=True, slots=True)
class _Market:
    endpoints: list[str]
    chain_id: int
    address: str
    start_block: int
    content: "ContentSettings"


def explain(
    task: Annotated[int, typer.Argument(help="The task's number.", min=1, metavar="TASK")],
    on: Annotated[
        str | None,
        typer.Option(
            help="A profile of 'trainyard config', 'devnet', or the address of an RPC endpoint; "
            "else the default profile, else the devnet of this machine."
        ),
    ] = None,
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

    A market that has no profile is named by an endpoint's address, as --on, with --market and
    --start-block; by several of them, as --endpoint, with --chain-id too; or it is that of an
    agent's settings in --home.

    Examples: 'trainyard explain 7', 'trainyard explain 7 --on sepolia --json'.
    """
    with telling_failures(as_json):
        given = (endpoint, market, chain_id, start_block)
        # With an address the rest of it belongs to that, as with all commands about a market.
        is_at = on is not None and on.startswith(("http://", "https://")) and endpoint is None
        is_given = not is_at and any(one is not None for one in given)
        if sum((on is not None, is_given, home is not None, folder is not None)) > 1:
            raise WrongUseError("--on, --endpoint, --home and --folder name different markets")
        if is_given:
            place = _given(endpoint, market, chain_id, start_block, gateway or [])
        elif home is not None:
            place = _of_agent(home)
        else:
            more = {
                "market": market,
                "chain_id": chain_id,
                "start_block": start_block,
                "gateways": gateway,
            }
            found = {name: one for name, one in more.items() if one is not None}
            place = _of_site(on, folder, found if is_at else {})
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


def _of_site(on: str | None, folder: Path | None, given: dict[str, Any]) -> _Market:
    with Site(Output(False), on, folder, given).open() as market:
        place = market.place
    return _Market(
        list(place.endpoints), place.chain_id, place.market, place.start_block, place.content
    )


def _of_agent(home: Path) -> _Market:
    from trainyard.content.settings import ContentSettings
    from worker_agent.settings import Home, read_settings

    place = Home(home.expanduser().absolute())
    settings = read_settings(place)
    chain, kept = settings.chain, settings.content
    content = ContentSettings(
        store=kept.store or place.content_store,
        kubo=kept.kubo,
        # Profiles are on boards.
        gateways=",".join(dict.fromkeys((*kept.gateways, *kept.boards))),
    )
    return _Market(list(chain.endpoints), chain.chain_id, chain.market, chain.start_block, content)


def _explained(place: _Market, number: int) -> dict[str, Any]:
    import time

    from trainyard.chain.endpoints import Endpoints
    from trainyard.chain.reading import read_market
    from trainyard.content.settings import open_content
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
    content = open_content(place.content)
    try:
        return {
            "market": place.address,
            **document,
            "content": _manifest(content, reading.book.tasks[number].terms.manifest),
            "notices": _notices(content, reading.book, number, seen),
        }
    finally:
        content.close()


def _told(endpoints: "Endpoints", seen: "list[Seen]") -> list[Any]:
    from trainyard.chain.reading import times_of
    from trainyard.protocol.explaining import Told

    times = times_of(endpoints, {one.block.number for one in seen})
    return [
        Told(one.event, one.block.number, times[one.block.number], one.transaction) for one in seen
    ]


def _manifest(content: "Content", digest: bytes) -> dict[str, Any]:
    """What the manifest says is to be trained; or why that cannot be told."""
    from trainyard.content.cid import Cid, Codec
    from trainyard.protocol.errors import TrainyardError
    from trainyard.protocol.manifest import Manifest

    try:
        manifest = Manifest.parse(content.fetcher.get(Cid(Codec.RAW, digest)).block)
    except TrainyardError as error:
        return {"error": f"the manifest cannot be read: {error}"}
    training = manifest.training
    return {
        "mode": training.mode,
        "workers": training.workers,
        "parameters": manifest.model.parameters,
        "steps": manifest.plan.steps,
        "segments": manifest.plan.segments,
        "batch": training.batch,
    }


def _notices(
    content: "Content", book: "Book", number: int, seen: "list[Seen]"
) -> list[dict[str, str]]:
    """Why workers gave the task up, also those whose slots others have by now.

    In their own words: a profile's digest is on chain, so it is theirs, and need not be true.
    """
    from trainyard.content.cid import Cid, Codec
    from trainyard.protocol.errors import TrainyardError
    from trainyard.protocol.profiles import MOST_PROFILES, Profile

    joined = [one.event.args["worker"] for one in seen if one.event.name == "SlotJoined"]
    known = {one: book.workers[one].profile for one in joined if one in book.workers}
    named = [(worker, digest) for worker, digest in known.items() if any(digest)]
    # All at once: each may have to be waited for.
    coming = [
        (worker, content.fetcher.submit(Cid(Codec.RAW, digest)))
        for worker, digest in named[-MOST_PROFILES:]
    ]
    found = []
    for worker, one in coming:
        try:
            profile = Profile.parse(one.result().block)
        except TrainyardError:
            # Who has it nowhere to be found has nothing to say.
            continue
        found += [{"worker": worker, "reason": why} for why in profile.reasons(number)]
    return found


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
        *_told_by_workers(document),
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


def _told_by_workers(document: dict[str, Any]) -> list[str]:
    from trainyard.protocol.explaining import namer

    name = namer(document["names"])
    said = [f"  {name(one['worker'])}: {one['reason']}" for one in document["notices"]]
    return ["", "Who gave up, in their own words", *said] if said else []


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
