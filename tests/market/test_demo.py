"""`trainyard demo` as a user runs it without a terminal."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from threading import Timer
from typing import Any

import httpx
import pytest

from tests.market.command import Trainyard
from tests.market.leftovers import leaving_nothing
from trainyard.cli.demo import Cheat
from trainyard.demo.task import FEE, REWARD, STAKE
from trainyard.sdk.receipts import Receipt

_LONGEST_S = 900
_HONEST_ACCURACY = 0.95


@dataclass(frozen=True, slots=True)
class _Played:
    said: str
    receipt: Receipt

    def rows(self, title: str) -> list[list[str]]:
        """The cells of the table with this title."""
        _, _, after = self.said.partition(title)
        lines = re.split(r"└", after)[0].splitlines()
        return [
            [cell.strip() for cell in line.strip("│").split("│")]
            for line in lines
            if line.startswith("│")
        ]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        return [(row[2], row[5]) for row in self.rows("What was checked")]

    @property
    def changes(self) -> dict[str, int]:
        """What the market gave or took, in wei."""
        return {row[0]: int(Decimal(row[3]) * 10**18) for row in self.rows("Who has what")}

    @property
    def last(self) -> str:
        """What it comes to, before the address of the page."""
        *_, concluded, page = self.said.strip().splitlines()
        assert re.fullmatch(r"The page of the task: http://127\.0\.0\.1:\d+/tasks/1", page)
        return concluded


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with leaving_nothing(tmp_path):
        yield tmp_path


def _play(folder: Path, *more: str) -> _Played:
    with _playing(folder, *more) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, ""), out
    return _Played(out, Receipt.load(folder / "receipt.json"))


def _play_and_look(folder: Path, look: Callable[[str], None]) -> _Played:
    """With a look at the page, by the address that is printed, before Ctrl-C ends it."""
    said = ""
    with _playing(folder, "--stay") as process:
        for line in process.stdout or ():
            said += line
            if page := re.fullmatch(r"The page of the task: (\S+)\n", line):
                look(page[1])
                process.send_signal(signal.SIGINT)
                break
        _, err = process.communicate()
    assert (process.returncode, err) == (0, ""), said
    return _Played(said, Receipt.load(folder / "receipt.json"))


@contextmanager
def _playing(folder: Path, *more: str) -> Iterator["subprocess.Popen[str]"]:
    trainyard = Trainyard(folder)
    # Wide enough for what it prints to stay on one line each.
    trainyard.environment |= {"COLUMNS": "200"}
    process = trainyard.start("demo", "--receipt", folder / "receipt.json", *more)
    limit = Timer(_LONGEST_S, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.wait()


def test_honest_work_is_trained_audited_and_paid_for(folder: Path) -> None:
    played = _play_and_look(folder, _see_its_whole_life)

    tested = [float(one) for one in re.findall(r"on the test images: (\d\.\d{4})", played.said)]
    assert tested
    assert all(accuracy >= _HONEST_ACCURACY for accuracy in tested)
    assert played.verdicts == [("auditor", "as claimed")] * 2
    assert played.changes == {
        "Walt": REWARD,
        "Wanda": REWARD,
        "Ada": FEE,
        "Bo": FEE,
        "Rita": -2 * REWARD - 2 * FEE,
        "burned": 0,
    }
    assert played.last == "The work was done, checked and paid for."
    receipt = played.receipt
    assert (receipt.outcome, receipt.failure, receipt.disputes) == ("settled", None, ())
    assert receipt.signer == receipt.requester
    assert f"receipt.json, signed by Rita ({receipt.requester}). It states:" in played.said
    assert "2 audits, 2 as claimed; 0 disputes" in played.said
    assert len(set(receipt.workers)) == 2
    assert [audit.answer for audit in receipt.audits] == [audit.opened for audit in receipt.audits]
    credited = {who: int(wei) for who, wei in receipt.credited_wei.items()}
    assert {credited[worker] for worker in receipt.workers if worker} == {STAKE + REWARD}
    assert {credited[audit.member] for audit in receipt.audits} == {FEE}
    assert receipt.transactions


def _see_its_whole_life(page: str) -> None:
    """On a page that is served, though the agents have ended by then."""
    base = page.removesuffix("/tasks/1")
    with httpx.Client(base_url=f"{base}/api/v1/tasks/1", trust_env=False, timeout=60) as client:

        def json_of(path: str) -> Any:
            return client.get(path).raise_for_status().json()

        assert "<html" in httpx.get(page, trust_env=False).raise_for_status().text
        assert [one["status"] for one in json_of("/timeline")["stages"]] == ["done"] * 6
        told = {series["name"]: series for series in json_of("/metrics")["series"]}
        assert {"loss", "accuracy"} <= told.keys()
        assert json_of("/result")["tested"]["accuracy"] >= _HONEST_ACCURACY
        model = client.get("/result/model.keras").raise_for_status()
        assert model.headers["x-content-cid"].startswith("baf")


@pytest.mark.long
@pytest.mark.parametrize("cheat", list(Cheat))
def test_cheat_is_caught_and_pays_and_nobody_else_does(folder: Path, cheat: Cheat) -> None:
    played = _play(folder, "--chain", "anvil", "--cheat", cheat.value)

    who = "Ada" if cheat is Cheat.COPY else "Walt"
    changes = played.changes
    assert changes[who] < 0
    assert f"{who} cheated and lost" in played.last
    honest = [name for name in changes if name not in (who, "Rita", "burned")]
    assert min(changes[name] for name in honest) >= 0
    # No wei comes or goes.
    assert sum(changes.values()) == 0
    if cheat is Cheat.COPY:
        assert played.receipt.outcome == "settled"
        assert ("auditor", "never revealed") in played.verdicts
        return
    assert played.receipt.outcome == "failed"
    assert changes["Rita"] >= -2 * FEE
    if cheat is Cheat.WITHHOLD:
        assert {verdict for _, verdict in played.verdicts} <= {
            "never shown by the worker",
            "no answer",
        }
        return
    assert played.receipt.failure == "fraud"
    assert "upheld" in {one.outcome for one in played.receipt.disputes}
    assert ("referee", "NOT as claimed") in played.verdicts
