"""`trainyard doctor`: what this machine is, and what it lacks to train, audit, work or pay."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import ExitCode, telling_failures
from trainyard.cli.output import Output, size_text

if TYPE_CHECKING:
    from trainyard.cli.equipment import Item
    from trainyard.engine.checkup import Checkup, Problem


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

    Exit code 1 if something is missing that training needs; the rest are notes.

    Examples: 'trainyard doctor', 'trainyard doctor --fresh --json'.
    """
    with telling_failures(as_json):
        from trainyard.cli.equipment import examine_equipment
        from trainyard.engine.checkup import examine

        output = Output(as_json)
        output.note("calibrating, which takes some seconds the first time")
        found, items = examine(folder, fresh=fresh), examine_equipment()
        output.result(_document(found, items), _lines(found, items))
        if found.is_ill:
            raise typer.Exit(ExitCode.FAILED)


def _problems(found: "Checkup", items: "Sequence[Item]") -> "list[Problem]":
    return [*found.problems, *(item.problem for item in items if item.problem is not None)]


def _document(found: "Checkup", items: "Sequence[Item]") -> dict[str, Any]:
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
        **{item.name: item.found for item in items},
        "problems": [
            {"what": one.what, "fix": one.fix, "needed": one.needed}
            for one in _problems(found, items)
        ],
    }


def _lines(found: "Checkup", items: "Sequence[Item]") -> list[str]:
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
        **{item.name: item.found or "none" for item in items},
    }
    lines = [f"{name.replace('_', ' '):<20} {value}" for name, value in shown.items()]
    return lines + [
        f"{'PROBLEM' if problem.needed else 'note'}: {problem.what}; {problem.fix}"
        for problem in _problems(found, items)
    ]
