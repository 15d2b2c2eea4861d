"""`trainyard explain` of a real task with a real dispute, in states that last until we go on.

Members are in the pool before they have agents, so the task waits for each of them in turn.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.arena import ENDED, FEE, STAKE, Arena, running_arena
from tests.market.leftovers import leaving_nothing
from trainyard.protocol.market import BURN_ADDRESS, TaskState
from trainyard.protocol.telling import amount

MEMBERS = 4


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("arena")
    with leaving_nothing(folder), running_arena(folder=folder / "net") as arena:
        yield arena


def places(arena: Arena) -> dict[str, list[str]]:
    """The ways to say where the market is."""
    net = arena.net
    said = ["--endpoint", net.url, "--market", net.market, "--chain-id", str(net.chain_id)]
    said += ["--start-block", str(net.start_block), "--gateway", net.content.gateway]
    return {"said": said, "devnet": ["--folder", str(net.place.folder)]}


def run(number: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainyard", "explain", str(number), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def explained(number: int, *options: str) -> tuple[dict[str, Any], str]:
    """What it says, for programs and for people."""
    document, text = run(number, *options, "--json"), run(number, *options)
    assert (document.returncode, text.returncode) == (0, 0), document.stderr + text.stderr
    found: dict[str, Any] = json.loads(document.stdout)
    return found, text.stdout


@pytest.mark.long
def test_a_task_is_explained_from_its_post_to_its_verdict(arena: Arena) -> None:
    """rule V6"""
    requester = arena.person()
    members = [arena.person() for _ in range(MEMBERS)]
    for member in members:
        arena.register(member)
    said = places(arena)["said"]
    number = arena.post(requester)

    document, text = explained(number, *said)
    assert (document["state"], document["next"]["call"]) == ("open", "join")
    assert f"Task {number} is open; policy audit." in text
    assert "anyone: take a free slot (join) until " in text
    assert "in 8 segments." in text

    cheat = arena.start("lazy", "lazy", takes=[requester.address])
    task = arena.wait_for(number, TaskState.AUDITING)
    [seat] = task.own_panel.seats
    document, text = explained(number, *said)
    assert (document["state"], document["next"]["call"]) == ("auditing", "auditCommit")
    assert document["next"]["who"] == [seat.member]
    assert f"the draw gives segment {seat.segment} to auditor 0 (" in text
    assert "auditor 0 (" in text.partition("Who moves next")[2]

    [auditor] = [one for one in members if one.address == seat.member]
    judges = [one for one in members if one.address != seat.member]
    arena.start("auditor", account=auditor)
    arena.wait("referees", lambda book: (seat.segment, 1) in book.tasks[number].panels)
    arena.wait(
        "a hearing",
        lambda book: len(book.tasks[number].panels[seat.segment, 1].seats) == len(judges),
    )
    document, text = explained(number, *places(arena)["devnet"])
    assert (document["state"], document["next"]["call"]) == ("disputed", "refereeCommit")
    assert set(document["next"]["who"]) == {one.address for one in judges}
    found = f"found another state than the workers after segment {seat.segment}: a dispute"
    assert f"auditor 0 ({seat.member[:8]}…) {found}" in text
    assert f"segment {seat.segment} is recomputed by 3 referees" in text

    for index, one in enumerate(judges):
        arena.start(f"judge-{index}", account=one)
    arena.wait_for(number, *ENDED)
    arena.wait("an end", lambda book: not book.tasks[number].own_panel.disputes)
    document, text = explained(number, "--home", str(cheat.home))
    assert (document["state"], document["failure"]) == ("failed", "fraud")
    assert document["moves"] == []
    assert "the workers are wrong" in text
    assert "nobody: it is over" in text
    parties = {one["who"]: one for one in document["parties"]}
    loser, fire = parties[cheat.address], parties[BURN_ADDRESS]
    assert (loser["held"], loser["credited"], loser["lost"]) == (0, 0, STAKE)
    assert f"{amount(STAKE)} are lost; can claim: nothing" in text
    assert fire["claim"] == "nothing: nobody has the key"
    assert f"{amount(fire['credited'])} are burned" in text
    assert parties[seat.member]["credited"] == arena.paid(number)[seat.member] > FEE
    assert parties[requester.address]["credited"] == arena.paid(number)[requester.address] > STAKE
    assert sum(one["credited"] for one in parties.values()) == sum(arena.paid(number).values())


def test_a_task_that_is_not_there_and_content_that_is_not_served_are_said(arena: Arena) -> None:
    options = places(arena)["said"]
    number = arena.post(arena.person(), audits=0)
    count = len(arena.book().tasks)

    missing = run(count + 1, *options)
    assert missing.returncode == 2
    assert f"there is no task {count + 1}: the market at {arena.net.market} has {count}" in (
        missing.stderr
    )

    elsewhere = [*options[:-1], "http://127.0.0.1:9"]
    document, text = explained(number, *elsewhere)
    assert "the manifest cannot be read" in document["content"]["error"]
    assert "the manifest cannot be read" in text
    assert "What happened" in text
