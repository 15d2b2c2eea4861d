"""Runs slither on what is deployed. Fails on a High or Medium finding without a written reason.

Reasons stand in slither-triage.toml. One that no longer matches a finding fails as well: it would
otherwise excuse the next bug at the same place.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.compile_contracts import DEPLOYED, ROOT, CompilerSettings, read_compiler_settings

TRIAGE = ROOT / "slither-triage.toml"
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """What a reason is bound to: the check and the function or variable, not a line number."""

    check: str
    where: str

    def __str__(self) -> str:
        return f"{self.check} at {self.where}"


def solc_arguments(settings: CompilerSettings) -> str:
    arguments = ["--evm-version", settings.evm_version, "--allow-paths", "."]
    if settings.optimizer["enabled"]:
        arguments += ["--optimize", "--optimize-runs", str(settings.optimizer["runs"])]
    if settings.via_ir:
        arguments.append("--via-ir")
    return " ".join(arguments)


def analyse(source: str, settings: CompilerSettings) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            str(BIN / "slither"),
            source,
            "--solc",
            str(Path(sys.prefix) / "solcx" / f"solc-v{settings.version}"),
            "--solc-remaps",
            " ".join(settings.remappings),
            "--solc-args",
            solc_arguments(settings),
            "--filter-paths",
            "node_modules",
            "--exclude-informational",
            "--exclude-low",
            "--exclude-optimization",
            "--fail-none",
            "--json",
            str(report),
        ]
        outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"slither failed on {source}:\n{outcome.stdout}{outcome.stderr}")
        answer = json.loads(report.read_text())
    if not answer["success"]:
        sys.exit(f"slither failed on {source}: {answer['error']}")
    findings: list[dict[str, Any]] = answer["results"].get("detectors", [])
    return findings


def place_of(finding: dict[str, Any]) -> Place:
    element = finding["elements"][0]
    fields = element.get("type_specific_fields", {})
    name = fields.get("signature", element["name"])
    parent = fields.get("parent", {}).get("name")
    return Place(finding["check"], f"{parent}.{name}" if parent else name)


def read_triage(path: Path) -> dict[Place, str]:
    entries = tomllib.loads(path.read_text()).get("accepted", [])
    for entry in entries:
        if set(entry) != {"check", "where", "reason"} or not entry["reason"].strip():
            sys.exit(f"{path.name}: an entry needs check, where and reason, got {entry}")
    return {Place(entry["check"], entry["where"]): entry["reason"] for entry in entries}


def main() -> None:
    settings = read_compiler_settings()
    found: dict[Place, str] = {}
    for name in DEPLOYED:
        for finding in analyse(f"contracts/{name}.sol", settings):
            found[place_of(finding)] = f"{finding['impact']}: {finding['description'].strip()}"
    reasons = read_triage(TRIAGE)

    unexplained = sorted(found.keys() - reasons.keys())
    for place in unexplained:
        print(f"{place}\n  {found[place]}\n", file=sys.stderr)
    obsolete = sorted(reasons.keys() - found.keys())
    for place in obsolete:
        print(f"{TRIAGE.name} explains what is not found: {place}", file=sys.stderr)
    if unexplained or obsolete:
        sys.exit(f"slither: {len(unexplained)} unexplained, {len(obsolete)} obsolete reasons")
    print(f"slither: {len(found)} High or Medium findings, each with a reason in {TRIAGE.name}")


if __name__ == "__main__":
    main()
