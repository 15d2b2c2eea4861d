"""Every rule of docs/protocol.md is cited by a test, and every citation names a rule."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULE = re.compile(r"^- \*\*([A-Z]\d+)\*\* ", re.MULTILINE)
CITATION = re.compile(r"\b[Rr]ules? ([A-Z]\d+(?:(?:, | and )[A-Z]\d+)*)")
NAME = re.compile(r"[A-Z]\d+")


def rules() -> list[str]:
    return RULE.findall((ROOT / "docs" / "protocol.md").read_text())


def citations() -> dict[str, set[str]]:
    """Cited rules, each with the files that cite it."""
    cited: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix not in (".py", ".sol") or path == Path(__file__):
            continue
        for group in CITATION.findall(path.read_text()):
            for name in NAME.findall(group):
                cited.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return cited


def test_rules_are_numbered_once() -> None:
    names = rules()
    assert names
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", rules())
def test_the_rule_is_cited_by_a_test(name: str) -> None:
    assert name in citations(), f"no test cites rule {name} of docs/protocol.md"


def test_cited_rules_exist() -> None:
    unknown = {name: files for name, files in citations().items() if name not in rules()}
    assert not unknown
