"""A finished run as content: all that somebody needs who wants to check it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.content.cid import Cid
from trainyard.content.content import Content, Report
from trainyard.engine.auditing import inputs_in
from trainyard.engine.classes import find_class
from trainyard.engine.errors import RunError
from trainyard.engine.evidence import (
    DELTAS,
    ENVIRONMENT,
    MANIFEST,
    STATES,
    TRACE,
    MadeOn,
    TraceList,
)
from trainyard.engine.journal import Journal
from trainyard.engine.offers import OFFERS
from trainyard.engine.scoring import Score, is_scored
from trainyard.engine.worker import MODEL
from trainyard.protocol.manifest import Manifest, Merge, RoundsPlan


def publish(journal: Journal, content: Content, *, progress: Report | None = None) -> Cid:
    """Add a finished run to the content store: manifest, trace, states, and the trained model."""
    manifest = Manifest.parse(journal.manifest)
    with laid_out(journal, manifest) as folder:
        if (journal.folder / MODEL).exists():
            os.link(journal.folder / MODEL, folder / MODEL)
        return content.add(folder, progress=progress).cid


@contextmanager
def laid_out(journal: Journal, manifest: Manifest, *, names_class: bool = True) -> Iterator[Path]:
    """A folder of all that checking a finished run takes, the same for all who have the run.

    The class of this machine goes with it, unless the run is not this machine's alone: on another
    one, other bits prove nothing.
    """
    if len(journal.entries) != manifest.plan.segments + 1:
        raise RunError(f"the run in {journal.folder} is not finished: run it to its end first")
    with tempfile.TemporaryDirectory(dir=journal.folder, prefix=".publish-") as name:
        folder = Path(name)
        (folder / STATES).mkdir()
        (folder / MANIFEST).write_bytes(journal.manifest)
        (folder / TRACE).write_text(TraceList.of(journal.trace).model_dump_json())
        for number in range(len(journal.entries)):
            path = journal.path_of(number)
            # Read again: whoever publishes another state than its trace names is a cheat to others.
            journal.state(number)
            os.link(path, folder / STATES / path.name)
        if isinstance(manifest.plan, RoundsPlan):
            _link_deltas(journal, manifest, manifest.plan, folder / DELTAS)
            _link_offers(journal, folder / OFFERS)
        if is_scored(manifest):
            Score.load(journal.folder).claimed_for(journal.entries[-1].state).save(folder)
        if names_class:
            own = MadeOn(environment_class=find_class().id)
            (folder / ENVIRONMENT).write_text(own.model_dump_json())
        yield folder


def _link_deltas(journal: Journal, manifest: Manifest, plan: RoundsPlan, folder: Path) -> None:
    """The deltas that the merges of rounds are of, by their hashes."""
    folder.mkdir()
    for number in range(plan.rounds):
        segment = plan.segment(Merge(number))
        for path in inputs_in(journal, manifest, segment).deltas:
            if not (folder / path.name).exists():
                os.link(path, folder / path.name)


def _link_offers(journal: Journal, folder: Path) -> None:
    """What the workers signed, so that who did a wrong part is known."""
    folder.mkdir()
    for path in (journal.folder / OFFERS).glob("*.json"):
        if not path.name.startswith("."):
            os.link(path, folder / path.name)
