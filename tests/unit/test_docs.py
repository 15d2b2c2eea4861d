"""What the documents say about the repository must be there."""

import pkgutil
import re
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
import trainyard
from scripts import api_reference
from tests.snippets import blocks, check_command, check_python, commands, inline_python

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_of_ours_take_what_they_are_shown_with(document: Path) -> None:
    for line in commands(document.read_text()):
        check_command(line)


def _known() -> dict[str, set[str]]:
    """Public names and modules of ours, with what functions may be given by name."""
    modules = {one.name: set[str]() for one in pkgutil.iter_modules(trainyard.__path__)}
    return modules | {name: api_reference.arguments_of(name) for name in trainyard.__all__}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_calls_what_is_there(document: Path) -> None:
    known = _known()

    text = document.read_text()
    for code in (*blocks(text, "python"), *inline_python(text)):
        check_python(code, known)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("trainyard.fut(model, x, y)", "trainyard.fut"),
        ("trainyard.fit(model, x, y, epoch=3)", "epoch"),
        ("await trainyard.aio.quote(model, rehearsal=False)", "rehearsal"),
    ],
)
def test_python_that_calls_what_is_not_there_is_found(code: str, why: str) -> None:
    known = _known()

    with pytest.raises(AssertionError, match=why):
        check_python(code, known)


@pytest.mark.parametrize(
    "line", ["trainyard foo", "trainyard devnet up --agent 3", "trainyard quote m.json --batches=5"]
)
def test_commands_that_are_not_there_are_found(line: str) -> None:
    with pytest.raises(AssertionError, match="in trainyard"):
        check_command(line)


def test_commands_are_found_in_blocks_and_lines() -> None:
    text = """
Say `trainyard tasks --json` at last.

```sh
trainyard devnet up \\
  --agents 3 > devnet.json && .venv/bin/trainyard tasks
```
"""

    assert commands(text) == [
        *("trainyard devnet up --agents 3", "trainyard tasks", "trainyard tasks --json"),
    ]


def test_the_api_reference_says_what_the_docstrings_say() -> None:
    assert api_reference.TARGET.read_text() == api_reference.text(), "run 'make docs' and commit it"


def test_a_public_name_without_a_docstring_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {**trainyard._PLACES, "EmptyError": "trainyard.unit_test_undocumented"}
    module = api_reference.Source.of("class EmptyError(Exception): ...\n")
    monkeypatch.setattr(trainyard, "_PLACES", places)
    monkeypatch.setattr(
        api_reference,
        "source_of",
        lambda place, known=api_reference.source_of: (
            module if place == places["EmptyError"] else known(place)
        ),
    )

    with pytest.raises(api_reference.UndocumentedError, match="EmptyError is public"):
        api_reference.text()
