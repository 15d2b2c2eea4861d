"""Kubo nodes for tests. A module that needs one says `pytest_plugins = ("tests.kubo_nodes",)`."""

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.kubo_blocks import StartNode
from trainyard.content.kubo_binary import KuboNotAvailableError, obtain_kubo
from trainyard.content.kubo_node import KuboNode


@pytest.fixture(scope="session")
def kubo_binary(pytestconfig: pytest.Config) -> Path:
    """A Kubo, which the first run on a machine has to build.

    Without any way to one its tests fail: a skip would pass for a run in which they did not.
    """
    capture: Any = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        try:
            return obtain_kubo(lambda line: print(line, flush=True))
        except KuboNotAvailableError as error:
            pytest.fail(f"there is no Kubo to test with: {error}", pytrace=False)


@pytest.fixture(scope="session")
def kubo_node(kubo_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KuboNode]:
    """One node for all tests that do it no harm."""
    with KuboNode(kubo_binary, tmp_path_factory.mktemp("kubo") / "repo") as node:
        yield node


@pytest.fixture
def start_node(kubo_binary: Path, tmp_path: Path) -> Iterator[StartNode]:
    """Starts nodes that a test may harm."""
    with ExitStack() as stack:
        count = iter(range(100))
        yield lambda: stack.enter_context(KuboNode(kubo_binary, tmp_path / f"node {next(count)}"))
