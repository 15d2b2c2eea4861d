"""What a task came to, where its workers publish something else than they should."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dapp.posting.examples import examples
from dapp.routes import results
from tests.dapp.server import Client, dapp_for, settings_for
from tests.dapp.yard import Yard
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, encode_node
from trainyard.content.names import ContentPath
from trainyard.content.ports import Batch
from trainyard.content.unixfs import Kind, UnixFs
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.evidence import Published
from trainyard.engine.limits import most_state_bytes
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.results import Result

_MANIFEST = Manifest.of(examples().items[0].manifest)
_TASK = 1


@pytest.fixture(scope="module")
def client(played: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with dapp_for(settings_for(played, tmp_path_factory.mktemp("dapp"))) as found:
        yield found


def raw(batch: Batch, data: bytes) -> Cid:
    cid = Cid.of(Codec.RAW, data)
    batch.put(cid, data)
    return cid


def node(batch: Batch, about: UnixFs, *links: Link) -> Cid:
    block = encode_node(links, about.encode())
    cid = Cid.of(Codec.DAG_PB, block)
    batch.put(cid, block)
    return cid


def folder(batch: Batch, **children: Cid) -> Cid:
    links = [Link(child, name, 0) for name, child in children.items()]
    return node(batch, UnixFs(Kind.DIRECTORY), *links)


@pytest.fixture
def publish(client: Client, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a run with such a last state the one of the task."""
    services = client.app.state.services

    def open_it(state: Cid, batch: Batch) -> None:
        states = folder(batch, **{"000001.safetensors": state})
        run = folder(batch, states=states, **{"trace.json": raw(batch, b"{}")})
        published = Published(
            services.content, ContentPath(run), _MANIFEST, ("0" * 64, "1" * 64), Path("/"), None
        )
        result = Result(
            manifest=_MANIFEST.digest.hex(), root="0" * 64, evidence=str(run), run=str(run)
        )
        claimed = ClaimedRun(str(run), result, published)
        monkeypatch.setattr(results, "read_result", lambda *_: (str(run), result))
        monkeypatch.setattr(results, "open_run", lambda *_: claimed)

    return open_it


def kept(client: Client) -> frozenset[Cid]:
    pins: frozenset[Cid] = client.app.state.services.content.store.pins()
    return pins


def test_a_state_that_is_too_large_is_not_kept(client: Client, publish: Any) -> None:
    with client.app.state.services.content.store.batch() as batch:
        piece = raw(batch, bytes(1 << 20))
        size = 1 << 40
        about = UnixFs(Kind.FILE, file_size=size, block_sizes=(size,))
        state = node(batch, about, Link(piece, "", size))
        publish(state, batch)

    found = client.json(f"/tasks/{_TASK}/result")
    refused = client.get(f"/tasks/{_TASK}/result/state")

    assert not found["available"]
    assert "and in this run it has at most" in found["reason"]
    assert refused.status_code == 422
    assert state not in kept(client)


def test_a_state_that_says_less_than_it_has_is_not_kept(client: Client, publish: Any) -> None:
    """Its own word is that it is empty; what hangs below it is all that its maker likes."""
    pieces = most_state_bytes(_MANIFEST) * 2 // (1 << 20) + 2
    with client.app.state.services.content.store.batch() as batch:
        links = [Link(raw(batch, bytes([n]) * (1 << 20)), "", 0) for n in range(pieces)]
        about = UnixFs(Kind.FILE, file_size=0, block_sizes=(0,) * pieces)
        state = node(batch, about, *links)
        publish(state, batch)

    found = client.json(f"/tasks/{_TASK}/result")

    assert not found["available"]
    assert "bytes that are allowed" in found["reason"]
    assert state not in kept(client)


def test_a_state_that_nobody_has_leaves_the_rest_of_the_result(
    client: Client, publish: Any
) -> None:
    with client.app.state.services.content.store.batch() as batch:
        publish(Cid(Codec.RAW, bytes(range(32))), batch)

    found = client.json(f"/tasks/{_TASK}/result")

    assert not found["available"]
    assert found["reason"].startswith("cannot get baf")
    assert found["run_cid"] is not None
    assert found["result_digest"] is not None
