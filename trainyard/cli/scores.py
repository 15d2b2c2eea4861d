"""Scores, as people read them, and their part of `trainyard audit`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trainyard.cli.failing import ExitCode
from trainyard.cli.place import Place

if TYPE_CHECKING:
    from trainyard.content.content import Content
    from trainyard.engine.material import Own
    from trainyard.engine.rescoring import ScoreAudit
    from trainyard.engine.results import Asked

NOT_REPLAYABLE = (
    "mode async is not replayable: states are checkpoints, and audits compute the score"
)


@contextmanager
def bounded_content(place: Place, most_gb: float) -> Iterator["Content"]:
    """The content plane for what a stranger's manifest asks to be fetched."""
    from trainyard.content.bounded import BoundedContent

    with place.content() as content:
        most_bytes = int(most_gb * 1e9)
        bounded = BoundedContent.of(content, most_bytes, "allow more with --most-gb")
        try:
            yield bounded
        finally:
            bounded.fetcher.close()


def audit_score(
    place: Place, result: str, asked: "Asked", cache: Path, own: "Own", most_gb: float
) -> None:
    """Compute the score of a run and say whether it came out as the run claims."""
    from trainyard.content.names import ContentPath
    from trainyard.engine.claims import run_named
    from trainyard.engine.rescoring import audit_score_of_folder, audit_score_of_result

    with bounded_content(place, most_gb) as content, place.output.progress("fetching") as bar:
        if Path(result).is_dir():
            found = audit_score_of_folder(
                content, Path(result), asked, cache, own=own, progress=bar
            )
        else:
            path, asked = run_named(content, ContentPath.parse(result), asked)
            found = audit_score_of_result(content, path, asked, cache, own=own, progress=bar)
    place.output.result(
        {
            "agrees": found.agrees,
            "replayable": False,
            "manifest": found.manifest,
            "root": found.root,
            "score": {
                "claimed": found.claimed.model_dump(mode="json"),
                "found": None if found.found is None else found.found.model_dump(mode="json"),
                "seconds": found.seconds,
                "reason": found.reason,
            },
        },
        _verdict(found),
    )
    if not found.agrees:
        raise typer.Exit(ExitCode.UNPROVEN if found.is_open else ExitCode.CORRUPT)


def _verdict(found: "ScoreAudit") -> Iterator[str]:
    yield f"manifest {found.manifest}"
    yield f"root     {found.root}"
    said = f"as claimed, {score_text(found.claimed.model_dump())}"
    if found.found is None:
        said = f"claimed {found.claimed.text}, and the last state has none: {found.reason}"
    elif not found.agrees:
        # Whole, for they may differ in the last digit.
        said = f"claimed {found.claimed.text}, found {found.found.text}"
    yield f"score    {said} ({found.seconds:.1f} s)"
    if found.is_open:
        yield (
            f"computed on class {found.claimed_class}, this machine is {found.own_class}: figures "
            "that differ by so little prove nothing"
        )
    yield f"replay   {NOT_REPLAYABLE}"


def score_text(score: dict[str, Any]) -> str:
    figures = score["figures"]
    return f"{figures_text(figures)}, of {figures['examples']} {score['records']} records"


def figures_text(measured: dict[str, Any]) -> str:
    figures = {"loss": measured["loss"], **measured["metrics"]}
    return ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
