"""Reading from gateways that lie, stall, cut off and never end."""

import io
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.hostile_gateway import Fault, HostileGateway, StreamFault
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content, Progress
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import SourceError, SourceTimeoutError, UnavailableError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.names import ContentPath
from trainyard.content.saving import part_of

DATA = random.Random(4).randbytes(200_000)
BLOCKS: dict[Cid, bytes] = {}
FILE = build_file(io.BytesIO(DATA), BLOCKS.__setitem__, FixedChunker(1000))
LEAF = [cid for cid in BLOCKS if cid.codec is Codec.RAW][120]
# With those who stall; with all others a busy machine may take its time.
PATIENCE_S = 1.0
STALLING = (Fault.SILENT, Fault.SILENT_HALFWAY, Fault.TRICKLED, Fault.TRICKLED_HEAD)

HARM = [fault for fault in Fault if fault is not Fault.NONE]
SAID = {
    Fault.FLIPPED: "sent a corrupt block",
    Fault.SHORT: "sent a corrupt block",
    Fault.CUT_OFF: "no answer",
    Fault.OVERSIZED: "over the 2097152 bytes",
    Fault.ENDLESS: "over the 2097152 bytes",
    Fault.WITHHELD: "does not have",
    Fault.SILENT: "did not come within 1 s",
    Fault.SILENT_HALFWAY: "did not come within 1 s",
    Fault.TRICKLED: "did not come within 1 s",
    Fault.TRICKLED_HEAD: "did not come within 1 s",
    Fault.ENDLESS_HEAD: "no answer",
    Fault.ENDLESS_TRAILER: "no answer",
    Fault.ERROR_500: "answered 500",
    Fault.RESET: "reset",
    Fault.GARBAGE: "no answer",
    Fault.REDIRECTED: "not followed",
    Fault.COMPRESSED: "sent a corrupt block",
    Fault.HTML: "sent a corrupt block",
}


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "store")


@pytest.fixture
def good() -> Iterator[HostileGateway]:
    """The same server without a fault."""
    with HostileGateway(BLOCKS) as gateway:
        yield gateway


def source(gateway: HostileGateway) -> GatewaySource:
    timeout_s = PATIENCE_S if gateway.fault in STALLING else 60.0
    return GatewaySource(gateway.address, timeout_s=timeout_s)


def cat(store: EmbeddedStore, *gateways: HostileGateway) -> bytes:
    sources = [source(gateway) for gateway in gateways]
    content = Content(store, sources, hedge_s=30)
    try:
        return b"".join(bytes(part) for part in content.cat(ContentPath(FILE.cid)))
    finally:
        content.close()
        for each in sources:
            each.close()


@pytest.mark.parametrize("chosen", [None, frozenset([LEAF])], ids=["everywhere", "one leaf"])
@pytest.mark.parametrize("fault", HARM, ids=lambda fault: fault.name.lower())
def test_a_fault_is_an_error_that_names_source_and_cid(
    store: EmbeddedStore, fault: Fault, chosen: frozenset[Cid] | None
) -> None:
    with HostileGateway(BLOCKS, fault, chosen) as bad:
        with pytest.raises(UnavailableError) as caught:
            cat(store, bad)

        said = str(caught.value)
        assert caught.value.cid == (LEAF if chosen else FILE.cid)
        assert f"gateway {bad.address}" in said
        assert str(caught.value.cid) in said
        assert SAID[fault] in said
        assert said.isprintable()


@pytest.mark.parametrize("chosen", [None, frozenset([LEAF])], ids=["everywhere", "one leaf"])
@pytest.mark.parametrize("fault", HARM, ids=lambda fault: fault.name.lower())
def test_a_second_source_makes_up_for_a_fault(
    store: EmbeddedStore, good: HostileGateway, fault: Fault, chosen: frozenset[Cid] | None
) -> None:
    with HostileGateway(BLOCKS, fault, chosen) as bad:
        assert cat(store, bad, good) == DATA


def test_a_whole_file_is_one_request_for_its_blocks(
    store: EmbeddedStore, good: HostileGateway
) -> None:
    assert cat(store, good) == DATA
    assert len(good.requests) == 2  # a look at the root, and the stream
    assert len(good.raw_requests()) == 1


@pytest.mark.parametrize("fault", list(StreamFault), ids=lambda fault: fault.name.lower())
def test_a_faulty_stream_is_made_up_for_by_single_blocks(
    store: EmbeddedStore, fault: StreamFault
) -> None:
    with HostileGateway(BLOCKS, fault) as bad:
        assert cat(store, bad) == DATA
        asked = len(bad.raw_requests())
    if fault is StreamFault.JUNK_FIRST:
        assert asked == 1
    else:
        assert asked > 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (StreamFault.UNREADABLE_CID, "unreadable CID"),
        (StreamFault.CUT_SHORT, "cut short"),
        (StreamFault.HUGE_SECTION, "bytes"),
        (StreamFault.NO_CAR, "where a CAR was asked for"),
    ],
)
def test_a_stream_that_breaks_says_who_broke_it(fault: StreamFault, why: str) -> None:
    with HostileGateway(BLOCKS, fault) as bad:
        gateway = source(bad)
        with pytest.raises(SourceError, match=why) as caught:
            list(gateway.stream(FILE.cid))
        assert str(caught.value).startswith(f"gateway {bad.address}")
        gateway.close()


def test_a_slow_source_is_hedged(store: EmbeddedStore, good: HostileGateway) -> None:
    """With patience for minutes, the answer comes from whoever has it."""
    with HostileGateway(BLOCKS, Fault.SILENT) as silent:
        sources = [GatewaySource(silent.address, timeout_s=600), source(good)]
        content = Content(store, sources, hedge_s=0.02)
        assert content.stat(ContentPath(FILE.cid)).size == len(DATA)
        content.close()


def test_nobody_listens() -> None:
    with HostileGateway(BLOCKS) as gone:
        address = gone.address
    with pytest.raises(SourceError, match="refused") as caught:
        GatewaySource(address, timeout_s=PATIENCE_S).fetch(FILE.cid)
    assert not isinstance(caught.value, SourceTimeoutError)


def test_a_reader_may_pause_as_long_as_it_likes(good: HostileGateway) -> None:
    """Only waiting for the other side counts against its time."""
    gateway = GatewaySource(good.address, timeout_s=PATIENCE_S)
    stream = gateway.stream(FILE.cid)
    received = [next(stream)]

    assert not threading.Event().wait(2 * PATIENCE_S)

    received += list(stream)
    assert dict(received) == BLOCKS
    gateway.close()


def test_a_get_whose_source_dies_goes_on_from_there(store: EmbeddedStore, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with HostileGateway(BLOCKS, Fault.WITHHELD, frozenset([LEAF])) as dying:
        content = Content(store, [source(dying)])
        with pytest.raises(UnavailableError):
            content.get(ContentPath(FILE.cid), target)
        content.close()
    kept = part_of(target, FILE.cid).stat().st_size
    assert kept == 120_000

    seen: list[Progress] = []
    with HostileGateway(BLOCKS) as back:
        content = Content(store, [source(back)])
        content.get(ContentPath(FILE.cid), target, progress=seen.append)
        content.close()
        asked = {line.split("/")[2].split("?")[0] for line in back.raw_requests()}

    assert target.read_bytes() == DATA
    leaves = [cid for cid in BLOCKS if cid.codec is Codec.RAW]
    assert not asked & {str(cid) for cid in leaves[:120]}
    assert seen[0] == Progress(kept, len(DATA), "already here")
    assert seen[-1].done == len(DATA)


def test_a_gateway_that_ends_in_the_middle_and_comes_back(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """Larger than all buffers on the way, so that the reader is still waiting when it ends."""
    data = random.Random(6).randbytes(120_000_000)
    served = Content(EmbeddedStore(tmp_path / "served"))
    cid = served.add(io.BytesIO(data)).cid
    server = GatewayServer(served)
    server.start()
    gateway = GatewaySource(server.address, timeout_s=5)
    reader = Content(store, [gateway])
    pieces = reader.cat(ContentPath(cid))
    first = bytes(next(pieces))

    server.stop()

    with pytest.raises(UnavailableError, match=gateway.name):
        for _ in pieces:
            pass
    server.start()
    assert b"".join(map(bytes, reader.cat(ContentPath(cid)))) == data
    assert data.startswith(first)
    server.stop()
    reader.close()
    gateway.close()
