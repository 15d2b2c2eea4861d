"""Offers of workers that are quicker than whoever leads them, such as after its machine failed."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.test_coordinator_start import Crew, OverError
from tests.unit.test_engine_round_log import Yard
from trainyard.engine.coordinating import Deadline
from trainyard.engine.coordinator import Coordinator
from trainyard.engine.crew import Lost
from trainyard.engine.events import Event, Merged, Offered
from trainyard.engine.exchange import Decision


class TalkingCrew(Crew):
    """Several words at once, as they come when they were not listened to for a while."""

    def __init__(self, said: Iterable[list[Event | Lost]]) -> None:
        super().__init__([])
        self._batches = iter(said)

    def listen(self, timeout_s: float | None) -> list[Event | Lost]:
        for batch in self._batches:
            self.slots -= {one.slot for one in batch if isinstance(one, Lost)}
            return batch
        raise OverError


@pytest.fixture
def other(tmp_path: Path) -> Yard:
    """The run as a worker has it that is a round ahead, with all offers of that round."""
    yard = Yard(tmp_path / "other")
    yard.lead_round(0, 1)
    for slot in (0, 1):
        yard.offer(slot)
    return yard


def lead(folder: Path, other: Yard, *said: list[Event | Lost]) -> tuple[Yard, TalkingCrew]:
    """Lead from the first round on, with all that anybody offers at hand."""
    leader, crew = Yard(folder / "leader"), TalkingCrew(said)
    for number in (0, 1):
        for slot in (0, 1):
            offer = other.exchange.offer(number, slot)
            assert offer is not None
            leader.exchange.put(other.exchange.get(offer.leaf))
            leader.exchange.put(other.exchange.get(offer.delta or ""))
            leader.exchange.post(offer)
    coordinator = Coordinator(
        leader.log, leader.exchange, crew, Deadline(), tell=lambda _: None, most_losses=None
    )
    with pytest.raises(OverError):
        coordinator.lead()
    return leader, crew


def merged(other: Yard) -> Merged:
    return Merged(slot=1, round=0, state=other.log.globe)


def decision(yard: Yard, number: int) -> Decision:
    found = yard.exchange.decision(number)
    assert found is not None
    return found


def test_offer_for_the_next_round_is_not_forgotten(tmp_path: Path, other: Yard) -> None:
    leader, crew = lead(
        tmp_path,
        other,
        [Offered(slot=0, round=0), Offered(slot=1, round=0)],
        [merged(other), Offered(slot=1, round=1)],
        [Offered(slot=0, round=1)],
    )

    assert [offer is not None for offer in decision(leader, 1).offers] == [True, True]
    assert crew.dismissed == []


def test_offer_for_the_next_round_by_another_state_is_waited_for_anew(
    tmp_path: Path, other: Yard
) -> None:
    """Whoever merged otherwise before goes back, and is not sent away for what it offered then."""
    leader, crew = lead(
        tmp_path,
        other,
        [Offered(slot=0, round=0), Lost(1, "its machine failed")],
        [Merged(slot=0, round=0, state=_alone(tmp_path)), Offered(slot=1, round=1)],
    )

    assert leader.log.round == 1
    assert leader.exchange.decision(1) is None
    assert crew.dismissed == []


def _alone(folder: Path) -> str:
    """The state after the first round, if only the first worker was in it."""
    yard = Yard(folder / "alone")
    yard.lead_round(0)
    return yard.log.globe


def test_worker_that_was_lost_since_is_not_waited_for(tmp_path: Path, other: Yard) -> None:
    """It is not in the next round by what it offered ahead: that is offered anew, or not at all."""
    leader, _ = lead(
        tmp_path,
        other,
        [Offered(slot=0, round=0), Offered(slot=1, round=0)],
        [Offered(slot=1, round=1), Lost(1, "its machine failed"), merged(other)],
    )

    assert leader.log.round == 1
    assert leader.exchange.decision(1) is None
