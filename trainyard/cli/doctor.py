"""`trainyard doctor`: what this machine is, and what it lacks to train or to audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import ExitCode, telling_failures
from trainyard.cli.output import Output, size_text

if TYPE_CHECKING:
    from trainyard.engine.checkup import Checkup


def doctor(
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Calibrate again instead of using the last result.")
    ] = False,
    folder: Annotated[
        Path, typer.Option(help="Where runs would be kept, to see its disk.", file_okay=False)
    ] = Path(),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
    ] = False,
) -> None:
    """Say of which environment class this machine is, and what is missing, each with its fix.

    Exit code 1 if something is missing that training needs.
    """
    with telling_failures(as_json):
        from trainyard.engine.checkup import examine

        output = Output(as_json)
        output.note("calibrating, which takes some seconds the first time")
        found = examine(folder, fresh=fresh)
        output.result(_document(found), _lines(found))
        if found.is_ill:
            raise typer.Exit(ExitCode.FAILED)


def _document(found: "Checkup") -> dict[str, Any]:
    known = found.environment_class
    return {
        "class": None if known is None else known.id,
        "environment": None if known is None else known.environment.model_dump(mode="json"),
        "calibration": None
        if known is None
        else {
            "digest": known.calibration.digest,
            "states": known.calibration.states,
            "seconds": known.seconds,
        },
        "processor": found.processor,
        "cores": found.cores,
        "memory_bytes": found.memory_bytes,
        "free_disk_bytes": found.free_disk_bytes,
        "own_network": found.own_network,
        "kubo": None if found.kubo is None else str(found.kubo),
        "problems": [
            {"what": one.what, "fix": one.fix, "needed": one.needed} for one in found.problems
        ],
    }


def _lines(found: "Checkup") -> list[str]:
    shown: dict[str, str] = {}
    known = found.environment_class
    if known is not None:
        shown["class"] = known.id
        shown |= known.environment.fields
        shown["calibration"] = f"{known.calibration.digest}  ({known.seconds:.1f} s)"
    shown |= {
        "processor": found.processor,
        "cores": str(found.cores),
        "memory": size_text(found.memory_bytes),
        "free disk": size_text(found.free_disk_bytes),
        "own network": "yes" if found.own_network else "no",
        "kubo": "none" if found.kubo is None else str(found.kubo),
    }
    lines = [f"{name.replace('_', ' '):<20} {value}" for name, value in shown.items()]
    return lines + [
        f"{'PROBLEM' if problem.needed else 'note'}: {problem.what}; {problem.fix}"
        for problem in found.problems
    ]
