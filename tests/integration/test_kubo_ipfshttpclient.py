"""The evidence of docs/adr/0007: what the published client can and cannot do with our Kubo."""

import io
import secrets
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from trainyard.content.car import write_car
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import KIB

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ipfshttpclient  # type: ignore[import-untyped]

pytest_plugins = ("tests.kubo_nodes",)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def client(kubo_node: KuboNode) -> Iterator[Any]:
    address = f"/ip4/127.0.0.1/tcp/{kubo_node.ports.api}"
    with ipfshttpclient.connect(address, timeout=30) as client:
        yield client


def test_it_reads_what_we_wrote_and_gives_the_same_cid(client: Any, kubo_node: KuboNode) -> None:
    data = secrets.token_bytes(700 * KIB)
    built = Content(KuboStore(kubo_node.api_url)).add(
        io.BytesIO(data), chunker=FixedChunker(256 * KIB)
    )

    assert client.cat(str(built.cid)) == data
    added = client.add(io.BytesIO(data), cid_version=1, raw_leaves=True)
    assert added["Hash"] == str(built.cid)


def test_it_cannot_connect_to_a_peer(client: Any, kubo_node: KuboNode) -> None:
    with pytest.raises(ipfshttpclient.exceptions.ErrorResponse, match="multiaddr"):
        client.swarm.connect(kubo_node.addresses[0])


@pytest.mark.parametrize(
    "options", [{}, {"pin-roots": "false"}, {"stats": "true"}], ids=["roots", "no pins", "counts"]
)
def test_it_cannot_import_a_car_as_a_batch_needs_it(client: Any, options: dict[str, str]) -> None:
    blocks = [secrets.token_bytes(10) for _ in range(2)]
    cids = [Cid.of(Codec.RAW, block) for block in blocks]
    car = b"".join(write_car(cids, zip(cids, blocks, strict=True)))
    with pytest.raises(AssertionError, match="one item"):
        client.dag.imprt(io.BytesIO(car), opts=options)


def test_it_cannot_pin_with_progress(client: Any, kubo_node: KuboNode) -> None:
    cid = Content(KuboStore(kubo_node.api_url)).add(io.BytesIO(secrets.token_bytes(10))).cid
    with pytest.raises(AssertionError, match="one item"):
        client.pin.add(str(cid), opts={"progress": "true"})
