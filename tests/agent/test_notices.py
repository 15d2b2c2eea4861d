"""What is said of tasks that were given up: once each, the last ones, no word of this machine."""

from pathlib import Path

import pytest

from trainyard.protocol.profiles import LONGEST_REASON, MOST_NOTICES, Notice, Profile
from worker_agent.notices import Notices
from worker_agent.settings import Home


def test_the_first_word_about_a_task_stays_also_after_a_restart(tmp_path: Path) -> None:
    home = Home(tmp_path)
    notices = Notices(home)
    notices.add(3, "it would take about 50 s more")
    notices.add(3, "it would take about 49 s more")
    again = Notices(home)
    again.add(3, "another")
    assert again.all == (Notice(task=3, reason="it would take about 50 s more"),)
    home.notices.write_text("{")
    assert Notices(home).all == ()


def test_what_could_not_be_kept_is_kept_later(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    notices = Notices(home)
    with pytest.raises(FileNotFoundError):
        notices.add(1, "no")
    assert not notices.all
    home.folder.mkdir()
    notices.add(1, "no")
    assert Notices(home).all == notices.all == (Notice(task=1, reason="no"),)


def test_only_the_last_are_kept(tmp_path: Path) -> None:
    notices = Notices(Home(tmp_path))
    for task in range(1, MOST_NOTICES + 3):
        notices.add(task, "no")
    assert [one.task for one in notices.all] == list(range(3, MOST_NOTICES + 3))


def test_a_reason_is_one_short_line_without_our_folder(tmp_path: Path) -> None:
    notices = Notices(Home(tmp_path))
    notices.add(1, f"{tmp_path}/tasks/1 is\x1b[2J\n full")
    notices.add(2, "x" * 500)
    notices.add(3, "\n")
    first, second, third = (one.reason for one in notices.all)
    assert first == "…/tasks/1 is [2J  full"
    assert (len(second), second[-1]) == (LONGEST_REASON, "…")
    assert third == "no reason is known"


def test_profile_carries_them_and_without_any_is_as_it_was() -> None:
    longest = [Notice.of(number + 1, "\U0001f682" * 500) for number in range(MOST_NOTICES)]
    gateway = "http://" + "a" * 250
    profile = Profile.parse(Profile.of("trainyard/1", b"c" * 32, gateway, longest).data)
    assert profile.reasons(2) == [longest[1].reason]
    assert profile.reasons(99) == []
    # Whoever writes a profile by hand may write what it likes.
    hostile = Profile.of("x", b"c" * 32, notices=[Notice(task=1, reason="\x1b[2J gone\n")])
    assert Profile.parse(hostile.data).reasons(1) == [" [2J gone "]
    plain = Profile.of("trainyard/1", b"c" * 32)
    assert b"notices" not in plain.data
    assert Profile.parse(plain.data).reasons(1) == []
