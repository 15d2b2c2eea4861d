"""Set-up of the conformance suites."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.content.embedded import EmbeddedStore
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import KIB
from trainyard.content.ports import ContentStore

OpenStore = Callable[[], ContentStore]


@pytest.fixture(params=["embedded", "kubo"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens the same store each time, as another process would."""
    if request.param == "embedded":
        return lambda: EmbeddedStore(tmp_path / "store")
    node: KuboNode = request.getfixturevalue("kubo_node")
    # Small lots, so that batches of a few blocks go the way that large ones go.
    return lambda: KuboStore(node.api_url, peer_timeout_s=5.0, lot_bytes=64 * KIB)


@pytest.fixture
def store(open_store: OpenStore) -> ContentStore:
    return open_store()


@pytest.fixture
def streaming_store(kubo_node: KuboNode) -> KuboStore:
    return KuboStore(kubo_node.api_url)


@pytest.fixture
def impatient(request: pytest.FixtureRequest, open_store: OpenStore) -> ContentStore:
    """The store, where a test waits for what does not come."""
    store = open_store()
    if isinstance(store, KuboStore):
        node: KuboNode = request.getfixturevalue("kubo_node")
        return KuboStore(node.api_url, timeout_s=2.0, peer_timeout_s=2.0)
    return store


@pytest.fixture
def fresh() -> Callable[[int], bytes]:
    """Bytes that no store has seen: tests share one node."""
    return secrets.token_bytes
