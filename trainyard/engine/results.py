"""Checks of somebody's run: what its segments come to, beside what it says."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainyard.content.content import Content, Report
from trainyard.content.errors import NotADirectoryContentError, NotFoundError
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import Recomputed, recompute
from trainyard.engine.auditor import Answer, Inputs, first_file, state_file
from trainyard.engine.classes import find_class
from trainyard.engine.confining import Confinement
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.errors import OtherRunError, RunError, StateError
from trainyard.engine.evidence import Kept, Published
from trainyard.engine.material import Own, fetch_files
from trainyard.engine.scoring import require_replayable
from trainyard.engine.state import State
from trainyard.engine.tolerance import Terms, begins_alike, within
from trainyard.engine.vouching import Voucher, voucher_of
from trainyard.protocol.manifest import Manifest, Merge, Plan, PredictPlan, RoundsPlan
from trainyard.protocol.trace import Trace

# What a run commits to and does not show, which is not a matter of who can be reached.
_NOT_SHOWN = (StateError, RunError, NotFoundError, NotADirectoryContentError)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a segment came to, beside what the run says."""

    segment: int
    title: str
    claimed: str
    # None if what the segment starts from is no state that a run can have, with the reason.
    found: str | None
    seconds: float
    reason: str = ""
    # For the part of a worker of rounds: who signed it, or why nobody did.
    signer: str | None = None
    unsigned: str = ""
    # Whether it is such that machines of all classes find the same bits.
    same_anywhere: bool = False
    # On a machine of another class: whether it is near enough; None if that cannot be asked.
    tolerated: bool | None = None

    @property
    def agrees(self) -> bool:
        return self.claimed == self.found and not self.unsigned

    @property
    def is_of_bits(self) -> bool:
        """Whether only bits are wrong, as an honest machine of another class might have them."""
        is_far = self.same_anywhere or self.tolerated is False
        return self.found is not None and not self.unsigned and not is_far


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found of a run. To begin with another state than the manifest is a wrong too."""

    # What was audited, to be compared with what was asked for.
    manifest: str
    root: str
    claimed_start: str
    found_start: str
    verdicts: tuple[Verdict, ...]
    # Of the whole trace.
    states: tuple[str, ...] = ()
    # The class that the run says it was computed on, and where that matters, this machine's.
    claimed_class: str | None = None
    own_class: str | None = None
    # On a machine of another class: whether the run may have begun right there.
    begins_alike: bool = False

    @property
    def begins_right(self) -> bool:
        return self.claimed_start == self.found_start

    @property
    def agrees(self) -> bool:
        return self.begins_right and all(verdict.agrees for verdict in self.verdicts)

    @property
    def is_open(self) -> bool:
        """Whether all that is wrong are bits, which on a machine of another class prove nothing."""
        is_other = self.own_class is not None and self.own_class != self.claimed_class
        if self.agrees or not is_other or not (self.begins_right or self.begins_alike):
            return False
        return all(one.is_of_bits for one in self.verdicts if not one.agrees)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be audited: a digest of a manifest, the root of a trace; None for whichever.

    In rounds also who signs, in the order of slots: a run can name anybody.
    """

    manifest: str | None = None
    root: str | None = None
    signers: tuple[str, ...] | None = None

    def check(self, manifest: str, root: str) -> None:
        for name, asked, found in (
            ("manifest", self.manifest, manifest),
            ("root of the trace", self.root, root),
        ):
            if asked is not None and asked.removeprefix("0x").lower() != found:
                raise OtherRunError(f"the {name} is {found}, and {asked} was asked for")


WHICHEVER = Asked()


def audit_result(
    content: Content,
    result: ContentPath,
    segments: Iterable[int],
    folder: Path,
    *,
    asked: Asked = WHICHEVER,
    own: Own | None = None,
    progress: Report | None = None,
    confinement: Confinement | None = None,
) -> Audit:
    """Recompute segments of a published run; what is fetched for that is kept in `folder`.

    What the user has of its data as their `own` is checked and not fetched.
    """
    run = Published.open(content, result, folder, progress)
    return _audit(run, content, segments, asked, folder, own, progress, confinement)


def audit_folder(
    content: Content,
    run: Path,
    segments: Iterable[int],
    folder: Path,
    *,
    asked: Asked = WHICHEVER,
    own: Own | None = None,
    progress: Report | None = None,
    confinement: Confinement | None = None,
) -> Audit:
    """The same for a run in a folder of this machine, finished or not."""
    return _audit(Kept(run), content, segments, asked, folder, own, progress, confinement)


def looked_at_for(plan: Plan, states: Sequence[str], segment: int) -> set[int]:
    """What is looked at beside a `segment` that starts from a state which says the run is over.

    The segments that made that state, in rounds all of a round. Else one wrong segment that says so
    would make all after it right, however few of them there are or whatever follows them. And one
    of those before the end, a different one for each: for the end may be right, and what it came
    from be made so that the run had to end.
    """
    if not isinstance(plan, RoundsPlan):
        end = max(states.index(states[segment]) - 1, 0)
        return {end, segment % (end + 1)}
    globes = list(states[:: plan.workers + 1])
    made_by = max(globes.index(globes[plan.part(segment).round]) - 1, 0)
    end = plan.before(made_by + 1)
    return {*range(plan.before(made_by), end), segment % end}


def _audit(
    run: Published | Kept,
    content: Content,
    segments: Iterable[int],
    asked: Asked,
    folder: Path,
    own: Own | None,
    progress: Report | None,
    confinement: Confinement | None,
) -> Audit:
    manifest, states = run.manifest, run.states
    if len(states) < 2:
        raise RunError("the run has no segment yet: wait for the end of its first one")
    root = Trace([bytes.fromhex(state) for state in states]).root.hex()
    asked.check(manifest.digest.hex(), root)
    require_replayable(manifest)
    wanted = set(segments)
    for segment in wanted:
        if not 0 <= segment < len(states) - 1:
            raise RunError(f"there is no segment {segment}: the run has {len(states) - 1}")
    # Of the user's own data nothing is fetched into it.
    folder.mkdir(parents=True, exist_ok=True)
    files = fetch_files(manifest, content, folder, own=own, progress=progress)
    inputs = {segment: run.inputs(segment) for segment in sorted(wanted)}
    for segment in sorted(wanted):
        # There is none where what the trace names is no state at all.
        if any(map(is_over, inputs[segment].states[:1])):
            for one in looked_at_for(manifest.plan, states, segment) - inputs.keys():
                inputs[one] = run.inputs(one)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".found-") as name:
        found = recompute(manifest, files, inputs, Path(name), confinement)
        return _verdicts(run, root, found, inputs, Path(name), asked)


def is_over(path: Path) -> bool:
    """Whether a state says that its run is over. One that is none at all is refused elsewhere."""
    try:
        return Counters.of(State.load(path)).stop is not Stop.NO
    except StateError:
        return False


def _verdicts(
    run: Published | Kept,
    root: str,
    found: Recomputed,
    inputs: Mapping[int, Inputs],
    kept: Path,
    asked: Asked,
) -> Audit:
    manifest, states = run.manifest, run.states
    vouchers = {
        one.segment: voucher_of(manifest, states, one.segment, run.offer, asked.signers)
        for one in found.answers
    }
    audit = Audit(
        manifest=manifest.digest.hex(),
        root=root,
        claimed_start=states[0],
        found_start=found.start,
        verdicts=tuple(
            _verdict(one, manifest, states, vouchers[one.segment]) for one in found.answers
        ),
        states=tuple(states),
        claimed_class=run.environment_class,
    )
    # Where the manifest names a class, who computed on another one is wrong.
    if audit.agrees or audit.claimed_class is None or manifest.environment is not None:
        return audit
    own_class = find_class().id
    if own_class == audit.claimed_class:
        return replace(audit, own_class=own_class)
    verdicts = tuple(_tolerated(one, run, inputs[one.segment], kept) for one in audit.verdicts)
    alike = audit.begins_right or _begins_alike(run, kept)
    return replace(audit, own_class=own_class, verdicts=verdicts, begins_alike=alike)


def _begins_alike(run: Published | Kept, kept: Path) -> bool:
    """Whether the run begins with what an honest machine of another class may begin with."""
    try:
        claimed = State.load(run.state(0))
    except _NOT_SHOWN:
        return False
    return begins_alike(claimed, State.load(first_file(kept)))


def _tolerated(verdict: Verdict, run: Published | Kept, inputs: Inputs, kept: Path) -> Verdict:
    """The verdict with what the tolerance says, where bits differ and it can be asked."""
    if verdict.claimed == verdict.found or verdict.found is None or verdict.same_anywhere:
        return verdict
    if isinstance(run.manifest.plan, RoundsPlan):
        return replace(verdict, reason="parts of rounds are not compared by tolerance")
    if isinstance(run.manifest.plan, PredictPlan):
        return replace(verdict, reason="predictions are not compared by tolerance")
    start, found = State.load(inputs.states[0]), State.load(state_file(kept, verdict.segment))
    try:
        claimed = State.load(run.state(verdict.segment + 1))
    except _NOT_SHOWN as error:
        # Bits differ, and what could excuse that is no state, or is not what the trace has.
        return replace(verdict, tolerated=False, reason=str(error))
    terms = Terms.of(run.manifest, verdict.segment)
    try:
        is_within = within(start, claimed, found, terms)
    except RunError as error:
        return replace(verdict, reason=str(error))
    return replace(verdict, tolerated=is_within)


def _verdict(
    found: Answer, manifest: Manifest, states: Sequence[str], voucher: Voucher | None
) -> Verdict:
    return Verdict(
        segment=found.segment,
        title=manifest.plan.title(found.segment),
        claimed=states[found.segment + 1],
        found=found.state,
        seconds=found.seconds,
        reason=found.reason,
        signer=None if voucher is None else voucher.signer,
        unsigned="" if voucher is None else voucher.problem,
        same_anywhere=_is_merge(manifest, found.segment),
    )


def _is_merge(manifest: Manifest, segment: int) -> bool:
    plan = manifest.plan
    return isinstance(plan, RoundsPlan) and isinstance(plan.part(segment), Merge)
