"""Checks of somebody's run: what its segments come to, beside what it says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import recompute
from trainyard.engine.auditor import Answer
from trainyard.engine.classes import find_class
from trainyard.engine.errors import OtherRunError, RunError
from trainyard.engine.evidence import Kept, Published
from trainyard.engine.material import fetch_files
from trainyard.engine.scoring import require_replayable
from trainyard.engine.vouching import Voucher, voucher_of
from trainyard.protocol.manifest import Manifest, RoundsPlan
from trainyard.protocol.trace import Trace


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

    @property
    def agrees(self) -> bool:
        return self.claimed == self.found and not self.unsigned


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found of a run. To begin with another state than the manifest is a wrong too."""

    # What was audited, to be compared with what was asked for.
    manifest: str
    root: str
    claimed_start: str
    found_start: str
    verdicts: tuple[Verdict, ...]
    # The class that the run says it was computed on, and where that matters, this machine's.
    claimed_class: str | None = None
    own_class: str | None = None

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
        only_bits = all(one.found is not None and not one.unsigned for one in self.verdicts)
        return not self.agrees and is_other and only_bits


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be audited: a digest of a manifest, the root of a trace; None for whichever."""

    manifest: str | None = None
    root: str | None = None

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
    progress: Report | None = None,
) -> Audit:
    """Recompute segments of a published run; what is fetched for that is kept in `folder`."""
    run = Published.open(content, result, folder, progress)
    return _audit(run, content, segments, asked, folder, progress)


def audit_folder(
    content: Content,
    run: Path,
    segments: Iterable[int],
    folder: Path,
    *,
    asked: Asked = WHICHEVER,
    progress: Report | None = None,
) -> Audit:
    """The same for a run in a folder of this machine, finished or not."""
    return _audit(Kept(run), content, segments, asked, folder, progress)


def with_end(manifest: Manifest, states: Sequence[str], segments: set[int]) -> set[int]:
    """The segments, and the one that ended the run if one of them only repeats its end.

    Else one wrong segment, which says that the run was over, would make all after it right.
    """
    if isinstance(manifest.plan, RoundsPlan):
        return segments | _ends_of_rounds(manifest.plan, states, segments)
    if not any(states[segment] == states[segment + 1] for segment in segments):
        return segments
    end = states.index(states[-1])
    return segments | {max(end - 1, 0)}


def _ends_of_rounds(plan: RoundsPlan, states: Sequence[str], segments: set[int]) -> set[int]:
    """The merges that ended the run for rounds that only repeat it, and the parts they are of.

    A merge goes on by steps, so that one which changes nothing is of a run that was over before.
    """
    globes = list(states[:: plan.workers + 1])
    ends = set()
    for number in {plan.part(segment).round for segment in segments}:
        first = globes.index(globes[number])
        if first < number or [globes[number]] == globes[number + 1 : number + 2]:
            ended_by = max(first - 1, 0)
            ends |= set(range(plan.before(ended_by), plan.before(ended_by + 1)))
    return ends


def _audit(
    run: Published | Kept,
    content: Content,
    segments: Iterable[int],
    asked: Asked,
    folder: Path,
    progress: Report | None,
) -> Audit:
    manifest, states = run.manifest, run.states
    root = Trace([bytes.fromhex(state) for state in states]).root.hex()
    asked.check(manifest.digest.hex(), root)
    require_replayable(manifest)
    wanted = set(segments)
    for segment in wanted:
        if not 0 <= segment < len(states) - 1:
            raise RunError(f"there is no segment {segment}: the run has {len(states) - 1}")
    files = fetch_files(manifest, content, folder, progress=progress)
    inputs = {one: run.inputs(one) for one in sorted(with_end(manifest, states, wanted))}
    found = recompute(manifest, files, inputs)
    audit = Audit(
        manifest=manifest.digest.hex(),
        root=root,
        claimed_start=states[0],
        found_start=found.start,
        verdicts=tuple(
            _verdict(one, manifest, states, voucher_of(manifest, states, one.segment, run.offer))
            for one in found.answers
        ),
        claimed_class=run.environment_class,
    )
    # Where the manifest names a class, who computed on another one is wrong.
    if audit.agrees or audit.claimed_class is None or manifest.environment is not None:
        return audit
    return replace(audit, own_class=find_class().id)


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
    )
