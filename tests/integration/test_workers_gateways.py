"""Finding what workers have: a board that says where, and gateways of strangers, good and bad."""

import io
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import urllib3

from tests.integration.hostile_gateway import Fault, HostileGateway
from trainyard.content import gateway_server, gateways
from trainyard.content.board import LARGEST_BYTES, Board, put_up
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError, SourceError, UnavailableError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.gateways import ask_workers
from trainyard.content.names import ContentPath
from trainyard.protocol.profiles import Profile

CLASS = b"c" * 32
BLOCK = b"what a worker has to show"
CID = Cid.of(Codec.RAW, BLOCK)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[GatewayServer]:
    content = Content(EmbeddedStore(tmp_path / "board"))
    with GatewayServer(content, board=Board()) as server:
        yield server
    content.close()


@pytest.fixture
def reader(board: GatewayServer, tmp_path: Path) -> Iterator[Content]:
    content = Content(EmbeddedStore(tmp_path / "reader"), [GatewaySource(board.address)])
    yield content
    content.close()


def port_of(address: str) -> int:
    return int(address.rsplit(":", 1)[1])


def told(board: GatewayServer, gateway: str | None) -> bytes:
    """Put up a profile with this gateway, and return its digest."""
    profile = Profile.of("trainyard/test", CLASS, gateway)
    put_up(board.address, profile.data)
    return Cid.of(Codec.RAW, profile.data).digest


class TestBoard:
    def test_what_is_put_up_is_found_by_its_name(self, board: GatewayServer) -> None:
        put_up(board.address, BLOCK)
        source = GatewaySource(board.address)
        assert source.fetch(CID) == BLOCK
        source.close()

    def test_gateway_without_a_board_takes_nothing(self, tmp_path: Path) -> None:
        content = Content(EmbeddedStore(tmp_path / "store"))
        with GatewayServer(content) as server:
            with pytest.raises(SourceError, match="does not take blocks: it answered 405"):
                put_up(server.address, BLOCK)
            source = GatewaySource(server.address)
            with pytest.raises(BlockNotFoundError):
                source.fetch(CID)
            source.close()
        content.close()

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            (f"{CID}", b"something else"),
            (f"{CID}/name", BLOCK),
            ("nothing", BLOCK),
            (f"{CID}", bytes(LARGEST_BYTES + 1)),
        ],
    )
    def test_what_it_does_not_take_it_refuses(
        self, board: GatewayServer, path: str, body: bytes
    ) -> None:
        with urllib3.PoolManager(retries=False) as pool:
            answer = pool.request("PUT", f"{board.address}/ipfs/{path}", body=body)
        assert answer.status == 400

    def test_nobody_answers_at_an_address_without_a_board(self) -> None:
        with pytest.raises(SourceError, match="cannot be asked"):
            put_up("http://127.0.0.1:1", BLOCK)


class TestWorkers:
    def test_block_is_found_by_the_profile_alone(
        self, board: GatewayServer, reader: Content, tmp_path: Path
    ) -> None:
        content = Content(EmbeddedStore(tmp_path / "worker"))
        with content.store.batch() as batch:
            batch.put(CID, BLOCK)
        with GatewayServer(content) as worker:
            digest = told(board, worker.address)
            with pytest.raises(UnavailableError):
                reader.fetcher.get(CID)
            assert ask_workers(reader, [digest], allow_private=True) == [worker.address]
            assert reader.fetcher.get(CID).block == BLOCK
        content.close()

    def test_profiles_that_nobody_has_or_that_are_none_are_passed_over(
        self, board: GatewayServer, reader: Content
    ) -> None:
        put_up(board.address, b"no profile")
        digests = [
            b"x" * 32,
            Cid.of(Codec.RAW, b"no profile").digest,
            told(board, None),
            told(board, board.address),
        ]
        before = len(reader.fetcher.sources)

        assert ask_workers(reader, digests, allow_private=True) == [board.address]
        # Who is asked already is not asked twice.
        assert len(reader.fetcher.sources) == before

    def test_machine_that_only_we_can_reach_is_not_asked(
        self, board: GatewayServer, reader: Content
    ) -> None:
        with HostileGateway({CID: BLOCK}) as inside:
            digest = told(board, inside.address)
            ask_workers(reader, [digest], allow_private=False)
            with pytest.raises(UnavailableError, match=r"127\.0\.0\.1, which is no public address"):
                reader.fetcher.get(CID)
            assert inside.requests == []

    @pytest.mark.parametrize(
        "fault", [Fault.SILENT, Fault.FLIPPED, Fault.TRICKLED, Fault.RESET, Fault.ENDLESS]
    )
    def test_bad_ones_before_a_good_one_cost_little(
        self, board: GatewayServer, reader: Content, fault: Fault
    ) -> None:
        reader.fetcher.hedge_s = 0.2
        with ExitStack() as parts:
            bad = [parts.enter_context(HostileGateway({CID: BLOCK}, fault)) for _ in range(4)]
            good = parts.enter_context(HostileGateway({CID: BLOCK}))
            digests = [told(board, one.address) for one in (*bad, good)]
            ask_workers(reader, digests, allow_private=True)
            began = time.monotonic()
            assert reader.fetcher.get(CID).block == BLOCK
            # No longer than each is waited for before the next is asked beside it.
            assert time.monotonic() - began < 5.0

    @pytest.mark.parametrize("fault", [Fault.SILENT, Fault.TRICKLED_HEAD])
    def test_block_that_nobody_has_is_not_waited_for_longer_than_a_stranger_may_take(
        self,
        board: GatewayServer,
        reader: Content,
        fault: Fault,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(gateways, "_STRANGER_S", 0.5)
        with HostileGateway({CID: BLOCK}, fault) as one, HostileGateway({CID: BLOCK}, fault) as two:
            digests = [told(board, one.address), told(board, two.address)]
            ask_workers(reader, digests, allow_private=True)
            began = time.monotonic()
            with pytest.raises(UnavailableError, match="did not come within"):
                reader.fetcher.get(CID)
            assert 0.5 < time.monotonic() - began < 5.0

    @pytest.mark.parametrize("fault", [Fault.SILENT_HALFWAY, Fault.FLIPPED, Fault.CUT_OFF])
    def test_whole_file_comes_past_bad_ones(
        self, board: GatewayServer, reader: Content, fault: Fault, tmp_path: Path
    ) -> None:
        data = random.Random(5).randbytes(300_000)
        blocks: dict[Cid, bytes] = {}
        cid = build_file(io.BytesIO(data), blocks.__setitem__, FixedChunker(10_000)).cid
        reader.fetcher.hedge_s = 0.2
        with ExitStack() as parts:
            bad = [parts.enter_context(HostileGateway(blocks, fault)) for _ in range(2)]
            good = parts.enter_context(HostileGateway(blocks))
            ask_workers(
                reader, [told(board, one.address) for one in (*bad, good)], allow_private=True
            )
            began = time.monotonic()
            reader.get(ContentPath(cid), tmp_path / "file")
            # Less than one stranger's silence: nobody was waited for to the end.
            assert time.monotonic() - began < 10.0
        assert (tmp_path / "file").read_bytes() == data


class TestCrowd:
    def test_who_connects_and_asks_nothing_is_let_go(
        self, board: GatewayServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_server, "_LOOK_S", 0.1)
        place = ("127.0.0.1", port_of(board.address))
        with (
            socket.create_connection(place, timeout=20) as silent,
            socket.create_connection(place, timeout=20) as halfway,
            socket.create_connection(place, timeout=20) as body,
        ):
            halfway.sendall(b"GET /ipfs/")
            body.sendall(
                f"PUT /ipfs/{CID} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n".encode()
            )
            for one in (silent, halfway, body):
                assert one.recv(1) == b""

    def test_one_address_has_only_so_many_connections(
        self, board: GatewayServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_server, "_CONNECTIONS_EACH", 2)
        # A proxy of this machine may have many; here we are to be others.
        monkeypatch.setattr(gateway_server, "_is_loopback", lambda host: False)
        place = ("127.0.0.1", port_of(board.address))
        asked = b"HEAD /ipfs/bafkqaaa HTTP/1.1\r\nHost: x\r\n\r\n"
        with ExitStack() as parts:
            first = [
                parts.enter_context(socket.create_connection(place, timeout=20)) for _ in range(2)
            ]
            for one in first:
                one.sendall(asked)
                assert one.recv(12) == b"HTTP/1.1 200"
            with socket.create_connection(place, timeout=20) as third:
                assert third.recv(1) == b""
            for one in first:
                one.sendall(asked)
                assert one.recv(12)
