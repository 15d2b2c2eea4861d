"""What the documents say about the repository must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MAKE_COMMAND = re.compile(r"`make ([a-z-]+)[^`]*`")
MAKE_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = [link for link in LINK.findall(document.read_text()) if "://" not in link]

    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(document: Path) -> None:
    targets = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text()))

    assert set(MAKE_COMMAND.findall(document.read_text())) - targets == set()
