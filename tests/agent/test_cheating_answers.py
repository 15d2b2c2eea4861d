"""Answers that a cheating auditor makes up are committed like any other, for the market to see."""

from pathlib import Path

from tests.agent.books import CLAIM, ME, PEER, committed, seated, situation, task
from tests.agent.test_deciding import AUDIT_COMMIT, CALLS, sent
from trainyard.protocol.market import OWN_PANEL, SeatState, TaskState
from worker_agent.cheating.plan import Cheat, Plan
from worker_agent.cheating.work import _answer, _claimed
from worker_agent.jobs import AnswerJob
from worker_agent.progress import TRACE, Shelf, asked
from worker_agent.settings import Home

STATES = [bytes([number + 1]).hex() * 32 for number in range(9)]


def test_answer_of_a_colluding_auditor_is_committed(tmp_path: Path) -> None:
    drawn = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN)
    [seat] = drawn.own_panel.seats
    home, partner = tmp_path / "own", tmp_path / "partner"
    Shelf(Home(partner).task(1)).write({"states": STATES}, TRACE)
    job = AnswerJob(
        home=home,
        task=1,
        manifest="",
        result=CLAIM.result.hex(),
        root=CLAIM.root.hex(),
        segment=seat.segment,
        is_scored=False,
        panel=(OWN_PANEL, 0),
        seat=0,
        about=asked([CLAIM], seat.segment),
        entries=(),
    )

    _answer(job, _claimed(job, Plan(cheat=Cheat.COLLUDE, partner=partner)))

    found = sent(situation(drawn, Shelf(Home(home).task(1)).progress()), AUDIT_COMMIT)
    told = bytes.fromhex(STATES[seat.segment + 1])
    assert found.call == CALLS.audit_commit(1, 0, committed(told))
