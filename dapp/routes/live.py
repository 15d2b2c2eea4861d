"""Live updates by server-sent events."""

from typing import Annotated

from eth_utils.address import to_checksum_address
from fastapi import APIRouter, Header, Query, Request

from dapp.live.listening import EventStream
from dapp.routes.documented import refusals
from dapp.services import ServicesDep

router = APIRouter(tags=["live"], responses=refusals())
_TOPIC = r"^(market|task:[1-9][0-9]{0,9}|account:0x[0-9a-fA-F]{40})$"
Topic = Annotated[str, Query(pattern=_TOPIC)]


# Not FastAPI's `EventSourceResponse`: it encodes for each listener what is the same for all.
@router.get("/events", response_class=EventStream, status_code=200)
async def events(
    request: Request,
    services: ServicesDep,
    topic: Annotated[list[Topic] | None, Query(max_length=8, examples=[["market"]])] = None,
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> EventStream:
    """What happens from now on, or since `Last-Event-ID`; the stream stays open."""
    after = None
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        after = int(last_event_id[:18])
    topics = [_spelled(one) for one in topic or ["market"]]
    return services.hub.listen(topics, request.scope["trainyard.client"], after)


def _spelled(topic: str) -> str:
    """Addresses as the index spells them."""
    name, colon, rest = topic.partition(":")
    return f"{name}:{to_checksum_address(rest)}" if colon and name == "account" else topic
