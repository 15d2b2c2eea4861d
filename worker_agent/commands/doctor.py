"""`trainyard worker doctor`: what an agent lacks before it can run, each with its fix."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import ExitCode, telling_failures
from trainyard.cli.output import Output, size_text
from worker_agent.commands.options import HomeOption, Json, home_at

if TYPE_CHECKING:
    from trainyard.engine.checkup import Checkup
    from worker_agent.checkup import AgentCheckup
    from worker_agent.settings import Home


def doctor(
    home: HomeOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Calibrate again instead of using the last result.")
    ] = False,
    machine: Annotated[
        bool, typer.Option(help="Look at the machine and its environment class, too.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Look at the machine, the chain, the account, the content and the sandbox.

    Exit code 1 if something is missing that the agent needs.
    """
    with telling_failures(as_json):
        from trainyard.engine.checkup import examine
        from worker_agent.checkup import examine_agent
        from worker_agent.settings import read_settings

        place, output = home_at(home), Output(as_json)
        settings = read_settings(place)
        found = examine_agent(place, settings)
        body = None
        if machine:
            output.note("calibrating, which takes some seconds the first time")
            body = examine(place.folder, fresh=fresh)
            found.problems.extend(body.problems)
            if body.environment_class is not None:
                found.found["speed"] = _speed(place, fresh)
        output.result(_document(found, body), _lines(found, body))
        if any(problem.needed for problem in found.problems):
            raise typer.Exit(ExitCode.FAILED)


def _speed(home: "Home", fresh: bool) -> dict[str, Any]:
    """Measured now, if it never was or is to be again; estimates for tasks rest on it."""
    from datetime import UTC, datetime

    from worker_agent.speed import measure_speed, measured_speed, speeds

    speed = measure_speed(home.speed) if fresh else measured_speed(home.speed)
    at = datetime.fromtimestamp(speed.measured_at, UTC)
    return {
        "measured_at": f"{at:%Y-%m-%d %H:%M} UTC",
        "least_step_s": round(speed.paces.step_s["least"], 5),
        "operations_per_s": {kind: round(value) for kind, value in speeds(speed.paces).items()},
    }


def _document(found: "AgentCheckup", body: "Checkup | None") -> dict[str, Any]:
    return {
        **found.found,
        "machine": None if body is None else _machine(body),
        "problems": [
            {"what": one.what, "fix": one.fix, "needed": one.needed} for one in found.problems
        ],
    }


def _machine(body: "Checkup") -> dict[str, Any]:
    known = body.environment_class
    return {
        "class": None if known is None else known.id,
        "calibration": None if known is None else known.calibration.digest,
        "processor": body.processor,
        "cores": body.cores,
        "memory_bytes": body.memory_bytes,
        "free_disk_bytes": body.free_disk_bytes,
    }


def _lines(found: "AgentCheckup", body: "Checkup | None") -> list[str]:
    shown = {name: value for name, value in found.found.items() if not isinstance(value, dict)}
    shown |= {f"endpoint {name}": state for name, state in found.found["endpoints"].items()}
    if (speed := found.found.get("speed")) is not None:
        shown["speed measured"] = speed["measured_at"]
        kinds = ", ".join(
            f"{kind} {value / 1e9:.1f} G/s" for kind, value in speed["operations_per_s"].items()
        )
        shown["speed of a thread"] = f"{speed['least_step_s'] * 1e3:.1f} ms a step; {kinds}"
    for name, value in (_machine(body) if body is not None else {}).items():
        is_size = name.endswith("_bytes")
        shown[name.removesuffix("_bytes")] = size_text(value) if is_size else value
    lines = [f"{name.replace('_', ' '):<20} {value}" for name, value in shown.items()]
    return lines + [
        f"{'PROBLEM' if problem.needed else 'note'}: {problem.what}; {problem.fix}"
        for problem in found.problems
    ]
