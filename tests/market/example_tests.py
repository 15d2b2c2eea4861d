"""The examples and the how-to pages, run as a reader would, on the market of test_sdk.py.

They are collected by that module, so that one devnet is enough for all of them.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

from examples.own_csv import make_csv
from tests.market.command import COMMAND
from tests.snippets import blocks
from trainyard.protocol.market import TaskState
from worker_agent.deciding.membership import NEVER_WEI

if TYPE_CHECKING:
    from tests.market.sdk_world import World

_ROOT = Path(__file__).resolve().parents[2]
_HOWTO = _ROOT / "docs" / "howto"
_NOTEBOOK_S = 300
# What the how-to pages begin with: the tutorial's model and data, and a history of its kind.
_TUTORIAL = (_ROOT / "docs" / "tutorial.md").read_text()
_BEFORE = """
import trainyard
history = trainyard.attach(TASK)
"""


def _example(world: "World", name: str, *arguments: str) -> str:
    done = world.run([sys.executable, "-m", f"examples.{name}", *arguments], _ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _settled(world: "World", said: str, audits: int = 2) -> None:
    """That the task which an example speaks of was trained, audited and paid."""
    found = re.search(r"task (\d+)", said)
    assert found, said
    task = world.market.read().book.tasks[int(found[1])]
    assert task.state is TaskState.SETTLED
    assert len(task.own_panel.seats) == audits


@pytest.mark.parametrize(
    ("name", "arguments", "audits", "least"),
    [
        # Two others are audited, which takes most of the time.
        ("mnist.train", ("--net", "mlp300", "--verify", "audit:0"), 0, 0.6),
        ("cifar10.train", (), 2, 0.5),
        ("text.train", (), 2, 0.9),
    ],
    ids=["mnist", "cifar10", "text"],
)
def test_example_of_a_classifier_trains(
    world: "World", name: str, arguments: tuple[str, ...], audits: int, least: float
) -> None:
    said = _example(world, name, "--small", *arguments)

    _settled(world, said, audits)
    accuracy = re.search(r"accuracy ([\d.]+)", said)
    assert accuracy, said
    assert float(accuracy[1]) > least, said


def test_example_of_a_csv_foretells_better_than_the_mean(world: "World") -> None:
    said = _example(world, "own_csv.train", "--small")

    _settled(world, said)
    off = re.search(r"price is off by ([\d,]+); the mean of all would be by ([\d,]+)", said)
    assert off, said
    error, guessed = (int(one.replace(",", "")) for one in off.groups())
    assert error < guessed / 2, said


def test_example_of_a_csv_is_as_it_was_made() -> None:
    assert make_csv.TARGET.read_text() == make_csv.text()


def _notebook() -> Any:
    text = (_ROOT / "examples" / "quickstart.ipynb").read_text()
    return nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]


def test_quickstart_trains_in_a_notebook_and_shows_a_bar(world: "World", tmp_path: Path) -> None:
    notebook = _notebook()
    assert [cell for cell in notebook.cells if cell.get("outputs")] == []

    NotebookClient(
        notebook, timeout=_NOTEBOOK_S, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    shown = "".join(one.get("data", {}).get("text/html", "") for one in outputs)
    printed = "".join(one.get("text", "") for one in outputs)
    assert re.search(r'<div>task \d+ <progress value="80" max="80">', shown), shown
    assert "2 of 2 audits agree" in shown
    accuracy = re.search(r"accuracy on records it never saw: ([\d.]+)", printed)
    assert accuracy, printed
    assert float(accuracy[1]) > 0.9
    assert len(re.findall(r"computed it again and found the same", printed)) == 2
    assert (tmp_path / "receipt.json").is_file()


def test_worker_that_is_brought_earns(world: "World", tmp_path: Path) -> None:
    """The others take nothing new meanwhile, so that it is its turn; they still audit."""
    homes = [agent.home for agent in world.net.agents]
    for home in homes:
        world.command("worker", "pause", "--home", home)
    try:
        said = _example(world, "bring_a_worker.bring", str(tmp_path / "mine"))
    finally:
        for home in homes:
            world.command("worker", "resume", "--home", home)

    address = re.search(r"^worker (0x\w{40})", said)
    assert address, said
    book = world.market.read().book
    number = max(book.tasks)
    assert [slot.worker for slot in book.tasks[number].slots] == [address[1]]
    assert re.search(rf"^task {number} +earned 0\.1 ETH", said, re.MULTILINE), said
    # It went home: nobody draws it any more.
    assert book.workers[address[1]].min_fee == NEVER_WEI


def test_how_to_pages_do_what_they_say(world: "World", left: int, tmp_path: Path) -> None:
    """All of their Python in one process, as one goes on where the other ends; then commands."""
    pages = sorted(_HOWTO.glob("*.md"))
    parts = [blocks(_TUTORIAL, "python")[0], _BEFORE.replace("TASK", str(left))]
    for page in pages:
        parts += [f"print('{page.name}')", *blocks(page.read_text(), "python")]

    said = world.python("\n".join(parts), tmp_path)

    assert [line for line in said.splitlines() if line.endswith(".md")] == [
        page.name for page in pages
    ]
    assert re.search(r"^audit:1 \d+ 0\.5", said, re.MULTILINE), said
    command = " ".join(map(shlex.quote, COMMAND))
    for page in pages:
        for block in blocks(page.read_text(), "sh"):
            script = f'set -eu\ntrainyard() {{ {command} "$@"; }}\n{block}'
            done = world.run(["bash", "-c", script], tmp_path)
            assert done.returncode == 0, f"{page.name}: {done.stdout}{done.stderr}"
