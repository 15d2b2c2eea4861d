"""Kubo nodes for tests. A module that needs one says `pytest_plugins = ("tests.kubo_nodes",)`."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from trainyard.content.kubo_binary import KuboNotAvailableError, obtain_kubo
from trainyard.content.kubo_node import KuboNode


@pytest.fixture(scope="session")
def kubo_binary(pytestconfig: pytest.Config) -> Path:
    """A Kubo, which the first run on a machine has to build; without any way to one, a skip."""
    capture: Any = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        try:
            return obtain_kubo(lambda line: print(line, flush=True))
        except KuboNotAvailableError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def kubo_node(kubo_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KuboNode]:
    """One node for all tests that do it no harm."""
    with KuboNode(kubo_binary, tmp_path_factory.mktemp("kubo") / "repo") as node:
        yield node
