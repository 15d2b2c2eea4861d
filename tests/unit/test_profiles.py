"""What workers say of themselves, and whom it is read of."""

import json

import pytest

from tests.agent.books import CLASS, ME, MEMBER, OTHER, PEER, situation, task
from trainyard.protocol.ledger.book import Slot, Worker
from trainyard.protocol.market import TaskState
from trainyard.protocol.profiles import MOST_PROFILES, Profile, ProfileError, profiles_of

GATEWAY = "http://worker.example.org:8490"


def test_profile_has_one_text_and_reads_back() -> None:
    profile = Profile.of("trainyard/1", CLASS, GATEWAY)

    assert Profile.parse(profile.data) == profile
    assert json.loads(profile.data) == {
        "version": 1,
        "agent": "trainyard/1",
        "class": CLASS.hex(),
        "gateway": GATEWAY,
    }
    assert "gateway" not in json.loads(Profile.of("trainyard/1", CLASS).data)


def test_what_later_versions_add_is_passed_over() -> None:
    document = json.loads(Profile.of("trainyard/9", CLASS, GATEWAY).data) | {"motto": "hello"}
    assert Profile.parse(json.dumps(document).encode()).gateway == GATEWAY


@pytest.mark.parametrize(
    "gateway",
    [
        "worker.example.org:8490",
        "ftp://worker.example.org",
        "http://worker.example.org/admin",
        "http://worker.example.org:8490?x=1",
        "http://user:secret@worker.example.org",
        "http://worker.example.org:99999",
        "http://-/",
        "http://a\nb",
    ],
)
def test_gateway_that_leads_anywhere_else_is_refused(gateway: str) -> None:
    document = {"version": 1, "agent": "a", "class": CLASS.hex(), "gateway": gateway}
    with pytest.raises(ProfileError, match="gateway"):
        Profile.parse(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b"{" * 4000, b" " * 5000])
def test_what_is_no_profile_is_refused(data: bytes) -> None:
    with pytest.raises(ProfileError):
        Profile.parse(data)


def test_those_with_a_slot_are_asked_the_leader_first() -> None:
    found = task(TaskState.RUNNING, workers=(ME, PEER), lead=1)
    book = situation(found).book
    for who in (ME, PEER, MEMBER, OTHER):
        book.workers[who] = Worker(CLASS, who.encode()[-32:])

    assert profiles_of(book, 1) == (book.workers[PEER].profile, book.workers[ME].profile)
    del book.workers[PEER]
    assert profiles_of(book, 1) == (book.workers[ME].profile,)


def test_a_crowd_of_slots_is_not_asked_as_a_whole() -> None:
    slots = [Slot(f"0x{number:040}") for number in range(200)]
    found = task(TaskState.RUNNING, slots=slots)
    book = situation(found).book
    for slot in slots:
        assert slot.worker is not None
        book.workers[slot.worker] = Worker(CLASS, slot.worker.encode()[-32:])

    assert len(profiles_of(book, 1)) == MOST_PROFILES
