"""`trainyard engine` and `trainyard audit`: runs without a chain, and checks of anybody's."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError
from trainyard.cli.place import Place, at_place
from trainyard.cli.scores import (
    NOT_REPLAYABLE,
    audit_score,
    bounded_content,
    figures_text,
    score_text,
)
from trainyard.cli.watching import watching

if TYPE_CHECKING:
    from trainyard.engine.journal import Entry
    from trainyard.engine.results import Audit
    from trainyard.protocol.manifest import Manifest

Folder = Annotated[Path | None, typer.Option(help="Where the run is kept.", file_okay=False)]
Data = Annotated[
    Path | None,
    typer.Option(
        help="A copy of the training records, a folder or an .npz file, instead of fetching "
        "them; it must be what the manifest names.",
        exists=True,
    ),
]
ValidationData = Annotated[Path | None, typer.Option(help="The same for validation.", exists=True)]
TestData = Annotated[
    Path | None, typer.Option(help="The same for the test at the end.", exists=True)
]
_RUNS = Path("trainyard-runs")


@at_place
def run(
    place: Place,
    manifest: Annotated[
        Path, typer.Argument(help="The manifest, a JSON file.", exists=True, dir_okay=False)
    ],
    mode: Annotated[str | None, typer.Option(help="Instead of the manifest's.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Instead of the manifest's.")] = None,
    local_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of a worker in a round, instead of the manifest's."),
    ] = None,
    deadline_s: Annotated[
        float | None,
        typer.Option(
            min=0, help="In rounds: how long others are waited for once one worker is done."
        ),
    ] = None,
    stall_s: Annotated[
        float,
        typer.Option(
            min=1, help="After how long without a step all start anew; in rounds, who says nothing."
        ),
    ] = 1800.0,
    folder: Folder = None,
    data: Data = None,
    validation_data: ValidationData = None,
    test_data: TestData = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Add the finished run to the store, to be checked.")
    ] = False,
) -> None:
    """Train as a manifest says, on this machine, and keep the trace.

    A run that was interrupted goes on where it was. Modes are single, sync, rounds and async. A run
    in mode async is not replayable and has a score instead.

    Example: 'trainyard engine run manifest.json --publish'.
    """
    from trainyard.engine.costs import Costs
    from trainyard.engine.launching import run_local
    from trainyard.engine.material import Own, fetch_files
    from trainyard.engine.publishing import publish as publish_run
    from trainyard.engine.scoring import Score, is_scored

    wanted = _manifest(manifest, mode, workers, local_steps)
    folder = folder or _RUNS / wanted.digest.hex()[:16]
    with place.content() as content:
        with place.output.progress("fetching") as bar:
            own = Own(data, validation_data, test_data)
            files = fetch_files(wanted, content, folder / "files", own=own, progress=bar)
        with watching(place.output, wanted) as watch:
            journal = run_local(
                wanted, files, folder, watch, deadline_s=deadline_s, stall_s=stall_s
            )
        cid = None
        if publish:
            with place.output.progress("publishing") as bar:
                cid = publish_run(journal, content, progress=bar)
    last, costs = journal.entries[-1], Costs.of(journal)
    score = Score.load(folder).model_dump(mode="json") if is_scored(wanted) else None
    document = {
        "folder": str(folder),
        "manifest": wanted.digest.hex(),
        "root": journal.trace.root.hex(),
        "segments": journal.trace.segments,
        "steps": last.step,
        "stopped": last.stop.name.lower(),
        "train_s": sum(entry.train_s for entry in journal.entries),
        "trace_s": sum(entry.trace_s for entry in journal.entries),
        "sent_bytes": costs.sent_bytes,
        "energy_j_estimated": costs.energy_j,
        "energy_estimated_by": list(costs.energy_by),
        "restarts": watch.restarts,
        "lost_s": watch.lost_s,
        "tested": None if watch.tested is None else watch.tested.model_dump(mode="json"),
        "replayable": score is None,
        "score": score,
        "states": [entry.model_dump(mode="json") for entry in journal.entries],
        "cid": None if cid is None else str(cid),
    }
    place.output.result(document, _report(document, journal.entries))


@at_place
def audit(
    place: Place,
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="The CID of a task's result or of a published run, or the folder of a run.",
        ),
    ],
    segment: Annotated[
        list[int] | None, typer.Option(help="Which segment, from 0 on; repeatable.", min=0)
    ] = None,
    manifest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="The manifest that it has to be of.")
    ] = None,
    root: Annotated[
        str | None, typer.Option(metavar="ROOT", help="The root that its trace has to have.")
    ] = None,
    signer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="In rounds: who has to sign, repeated in the order of slots."
        ),
    ] = None,
    data: Data = None,
    validation_data: ValidationData = None,
    test_data: TestData = None,
    cache: Annotated[
        Path, typer.Option(help="Where fetched data is kept for the next time.", file_okay=False)
    ] = Path("trainyard-audits"),
    most_gb: Annotated[
        float, typer.Option(help="How much may be fetched for it, in GB: a stranger asks.", min=0)
    ] = 10.0,
) -> None:
    """Recompute segments of a run and say whether they came out as it claims.

    The state that it begins with is computed from the manifest and compared too. A run in mode
    async is not replayable: leave the segments out, and its score is computed and compared. All of
    it is computed in this account, without a sandbox. Exit
    code 4 if anything differs, 5 if only bits do and the run was computed on another class of
    machine.

    Example: 'trainyard audit bafy… --segment 0 --segment 7'.
    """
    from trainyard.cli.failing import ExitCode
    from trainyard.content.names import ContentPath
    from trainyard.engine.claims import run_named
    from trainyard.engine.material import Own
    from trainyard.engine.results import Asked, audit_folder, audit_result

    asked = Asked(manifest, root, tuple(signer) if signer else None)
    own = Own(data, validation_data, test_data)
    if not segment:
        audit_score(place, result, asked, cache, own, most_gb)
        return
    with bounded_content(place, most_gb) as content, place.output.progress("fetching") as bar:
        if Path(result).is_dir():
            found = audit_folder(
                content, Path(result), segment, cache, asked=asked, own=own, progress=bar
            )
        else:
            path, asked = run_named(content, ContentPath.parse(result), asked)
            found = audit_result(content, path, segment, cache, asked=asked, own=own, progress=bar)
    place.output.result(
        {
            "agrees": found.agrees,
            "manifest": found.manifest,
            "root": found.root,
            "start": {"claimed": found.claimed_start, "found": found.found_start},
            "class": {"claimed": found.claimed_class, "own": found.own_class},
            "segments": [{"agrees": one.agrees, **asdict(one)} for one in found.verdicts],
        },
        _verdicts(found),
    )
    if not found.agrees:
        raise typer.Exit(ExitCode.UNPROVEN if found.is_open else ExitCode.CORRUPT)


def _verdicts(found: "Audit") -> Iterator[str]:
    yield f"manifest {found.manifest}"
    yield f"root     {found.root}"
    if not found.begins_right:
        yield f"the run begins with {found.claimed_start}, its manifest with {found.found_start}"
    for one in found.verdicts:
        said = f"as claimed, {one.found}"
        if one.found is None:
            said = f"claimed {one.claimed}, and nothing follows from its start: {one.reason}"
        elif one.claimed != one.found:
            said = f"claimed {one.claimed}, found {one.found}"
        if one.tolerated is not None:
            said += ", near enough" if one.tolerated else ", too far apart for any honest machine"
        if one.found is not None and one.reason:
            said += f": {one.reason}"
        if one.claimed != one.found and one.signer is not None:
            said += f"; signed by {one.signer}"
        if one.unsigned:
            said += f"; {one.unsigned}"
        yield f"{one.title}: {said} ({one.seconds:.1f} s)"
    if found.is_open:
        yield (
            f"computed on class {found.claimed_class}, this machine is {found.own_class}: "
            "differing bits alone prove nothing"
        )


def _manifest(
    path: Path, mode: str | None, workers: int | None, local_steps: int | None
) -> "Manifest":
    import json

    from trainyard.protocol.manifest import Manifest

    manifest = Manifest.parse(path.read_bytes())
    if mode is None and workers is None and local_steps is None:
        return manifest
    document: dict[str, Any] = json.loads(manifest.canonical)
    training = document["training"]
    if mode is not None:
        training["mode"] = mode
    if workers is not None:
        training["workers"] = workers
    if training["mode"] == "rounds":
        # Where nobody says how long a round is, it is as long as a segment was.
        length = local_steps or training.get("rounds", {}).get("local_steps")
        length = length or training["steps_per_segment"]
        training["rounds"] = {**training.get("rounds", {}), "local_steps": length}
        if workers is not None:
            # It was said of another number of workers.
            training["rounds"].pop("quorum", None)
        training["steps_per_segment"] = length
    elif local_steps is not None:
        raise WrongUseError("only mode rounds has local steps: add --mode rounds")
    else:
        training.pop("rounds", None)
    return Manifest.of(document)


def _report(document: dict[str, Any], entries: list["Entry"]) -> Iterator[str]:
    from trainyard.engine.energy import BASES

    trained = [entry.trained for entry in entries if entry.trained is not None]
    if trained:
        yield f"trained   {document['steps']} steps, {figures_text(trained[-1].model_dump())}"
    validated = [one for entry in entries for one in entry.validated]
    if validated:
        last = validated[-1]
        yield f"validated epoch {last.epoch}, {figures_text(last.model_dump())}"
    if document["tested"]:
        yield f"tested    {figures_text(document['tested'])}"
    if document["stopped"] != "no":
        yield f"stopped   {document['stopped']}"
    yield f"time      {document['train_s']:.1f} s, and {document['trace_s']:.2f} s for the trace"
    if document["restarts"]:
        times = "time" if document["restarts"] == 1 else "times"
        yield f"lost      {document['lost_s']:.1f} s, started anew {document['restarts']} {times}"
    if document["sent_bytes"]:
        yield f"sent      {document['sent_bytes']:,} bytes between workers"
    if document["energy_j_estimated"] is not None:
        basis = " and ".join(BASES[one] for one in document["energy_estimated_by"])
        yield f"energy    {document['energy_j_estimated']:,.1f} J, estimated (codecarbon, {basis})"
    if document["score"]:
        yield f"score     {score_text(document['score'])}"
        yield f"replay    {NOT_REPLAYABLE}"
    yield f"trace     {document['segments']} segments, root {document['root']}"
    yield f"folder    {document['folder']}"
    if document["cid"]:
        yield f"published {document['cid']}"
