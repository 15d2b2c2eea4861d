"""A gateway over a store with a file and a tree, for a module of tests."""

import io
from collections.abc import Iterator

import pytest
import urllib3

from tests.integration.gateway_world import CHUNK, DATA, Asker
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_server import GatewayServer


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    return Content(EmbeddedStore(tmp_path_factory.mktemp("gateway") / "store"))


@pytest.fixture(scope="module")
def file_cid(content: Content) -> Cid:
    return content.add(io.BytesIO(DATA), chunker=CHUNK).cid


@pytest.fixture(scope="module")
def tree_cid(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Cid:
    """A folder with a file, a folder, and a folder of so many names that it is sharded."""
    root = tmp_path_factory.mktemp("tree")
    (root / "sub dir").mkdir()
    (root / "sub dir" / "ümlaut").write_bytes(DATA[:250])
    (root / "many").mkdir()
    for number in range(6000):
        (root / "many" / f"file {number:05}").write_bytes(b"%d" % (number % 10))
    return content.add(root, chunker=CHUNK).cid


@pytest.fixture(scope="module")
def server(content: Content) -> Iterator[GatewayServer]:
    with GatewayServer(content) as running:
        yield running


@pytest.fixture(scope="module")
def http() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False) as pool:
        yield pool


@pytest.fixture
def ask(server: GatewayServer, http: urllib3.PoolManager) -> Asker:
    return Asker(server, http)
