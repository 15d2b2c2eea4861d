"""The one TensorFlow of this test process, with the plugin in it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.integration.iptf_world import World


@cache
def world() -> World:
    """A world whose gate this process has joined; it stays until the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="iptf-test-")
    _kept.append(folder)
    made = World(Path(folder.name))
    with _environment(made.environment):
        import tensorflow  # noqa: F401

        from trainyard.iptf import enable

        enable()
    return made


_kept: list["tempfile.TemporaryDirectory[str]"] = []


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Only the gate needs them: other tests of this process have worlds of their own."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
