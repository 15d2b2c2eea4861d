"""Audits of runs that cannot be replayed: the score that they claim, computed again."""

from dataclasses import dataclass, replace
from pathlib import Path

from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import rescore
from trainyard.engine.classes import find_class
from trainyard.engine.confining import Confinement
from trainyard.engine.errors import RunError
from trainyard.engine.evidence import Kept, Published
from trainyard.engine.material import Own, fetch_files
from trainyard.engine.results import Asked
from trainyard.engine.scoring import Score, require_scored
from trainyard.protocol.trace import Trace


@dataclass(frozen=True, slots=True)
class ScoreAudit:
    """The score of a run's last state, beside the one that the run says.

    It says how good the state is, and nothing about how the run came to it.
    """

    # What was audited, to be compared with what was asked for.
    manifest: str
    root: str
    claimed: Score
    # None if the last state is none that a run can have, with the reason.
    found: Score | None
    seconds: float
    reason: str = ""
    # The class that the run says it was computed on, and where that matters, this machine's.
    claimed_class: str | None = None
    own_class: str | None = None
    # The names of those metrics that are shares of the examples.
    shares: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return self.found is not None and self.claimed.text == self.found.text

    @property
    def is_credible(self) -> bool:
        """Whether one can stand by the claim: it is this score, or as near as classes may differ.

        Workers of a scored run may be of any class, and nobody says which one its leader has.
        """
        return self.found is not None and (self.agrees or self._is_near(self.found))

    @property
    def is_open(self) -> bool:
        """Whether figures differ as they may between classes of machines, by a little."""
        if self.agrees or self.found is None or self.own_class in (None, self.claimed_class):
            return False
        return self._is_near(self.found)

    def _is_near(self, found: Score) -> bool:
        return self.claimed.is_near(found, self.shares)


def audit_score_of_result(
    content: Content,
    result: ContentPath,
    asked: Asked,
    folder: Path,
    *,
    own: Own | None = None,
    progress: Report | None = None,
    confinement: Confinement | None = None,
) -> ScoreAudit:
    """Compute the score of a published run; what is fetched for that is kept in `folder`.

    What the user has of its data as their `own` is checked and not fetched.
    """
    run = Published.open(content, result, folder, progress)
    return _audit(run, content, asked, folder, own, progress, confinement)


def audit_score_of_folder(
    content: Content,
    run: Path,
    asked: Asked,
    folder: Path,
    *,
    own: Own | None = None,
    progress: Report | None = None,
    confinement: Confinement | None = None,
) -> ScoreAudit:
    """The same for a run in a folder of this machine."""
    kept = Kept(run)
    require_scored(kept.manifest)
    if len(kept.states) != kept.manifest.plan.segments + 1:
        raise RunError(f"the run in {run} is not finished: run it to its end first")
    return _audit(kept, content, asked, folder, own, progress, confinement)


def _audit(
    run: Published | Kept,
    content: Content,
    asked: Asked,
    folder: Path,
    own: Own | None,
    progress: Report | None,
    confinement: Confinement | None,
) -> ScoreAudit:
    require_scored(run.manifest)
    manifest = run.manifest.digest.hex()
    root = Trace([bytes.fromhex(state) for state in run.states]).root.hex()
    asked.check(manifest, root)
    claimed = run.score
    # Of the user's own data nothing is fetched into it.
    folder.mkdir(parents=True, exist_ok=True)
    files = fetch_files(run.manifest, content, folder, own=own, progress=progress)
    found = rescore(run.manifest, files, run.state(len(run.states) - 1), confinement)
    audit = ScoreAudit(
        manifest=manifest,
        root=root,
        claimed=claimed,
        found=found.score,
        seconds=found.seconds,
        reason=found.reason,
        claimed_class=run.environment_class,
        shares=run.manifest.training.shares,
    )
    if audit.agrees or audit.claimed_class is None or run.manifest.environment is not None:
        return audit
    return replace(audit, own_class=find_class().id)
