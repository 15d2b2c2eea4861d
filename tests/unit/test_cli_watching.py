"""What the command remembers of a run, and what is kept of it."""

from pathlib import Path

import pytest

from tests.engine.nets import manifest_of
from trainyard.cli.engine import _Watch
from trainyard.cli.output import Output
from trainyard.cli.place import Place
from trainyard.engine.events import Ended
from trainyard.engine.journal import Measured
from trainyard.engine.tested import TESTED, keep_tested, read_tested

FOUND = Measured(loss=0.5, metrics={"accuracy": 0.25}, examples=4)


@pytest.mark.parametrize("slot", [0, 1])
def test_test_is_that_of_whichever_worker_did_it(slot: int) -> None:
    watch = _Watch(Place(Output(as_json=True), None, None, ()), manifest_of("mlp"))

    watch(Ended(slot=slot, root="0" * 64, tested=FOUND))
    watch(Ended(slot=1 - slot, root="0" * 64))

    assert watch.tested == FOUND


def test_test_is_kept_with_its_run(tmp_path: Path) -> None:
    assert read_tested(tmp_path) is None

    keep_tested(tmp_path, FOUND)
    assert read_tested(tmp_path) == FOUND

    (tmp_path / TESTED).write_bytes(b"half")
    assert read_tested(tmp_path) is None
