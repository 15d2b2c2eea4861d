"""A worker registers once, with its bond or without."""

from dataclasses import replace

from tests.agent.books import ME, STAKE, situation, task
from trainyard.protocol.market import TaskState
from worker_agent.actions import Send
from worker_agent.deciding import decide
from worker_agent.policy import Policy
from worker_agent.situation import Situation

BOND = 6 * STAKE


def newcomer() -> Situation:
    s = situation(task(TaskState.SETTLED), policy=Policy(bond=BOND))
    del s.book.workers[ME]
    return s


def sends(s: Situation) -> list[Send]:
    return [one for one in decide(s) if isinstance(one, Send)]


def test_who_has_too_little_for_its_bond_registers_without() -> None:
    s = newcomer()
    [with_bond] = sends(s)
    assert with_bond.call == s.calls.register(b"", s.env_class, BOND, value=BOND)
    [without] = sends(replace(s, purse=BOND - 1))
    assert without.call == s.calls.register(b"", s.env_class, 0)


def test_what_a_registration_takes_with_it_is_no_reason_for_another() -> None:
    """It would be another key, and the market would refuse it: at the price of its gas."""
    s = newcomer()
    [first] = sends(s)
    assert sends(replace(s, pending={first.key: first.call}, purse=s.purse - BOND)) == []


def test_what_a_bond_takes_of_the_credit_is_spent_while_it_is_pending() -> None:
    s = newcomer()
    s.book.account(ME).credit = 2 * STAKE
    [first] = sends(s)
    assert first.call.value == BOND - 2 * STAKE
    assert replace(s, pending={first.key: first.call}).credit == 0
    added = s.calls.add_bond(STAKE, value=STAKE // 4)
    assert replace(s, pending={"bond/0": added}).credit == 2 * STAKE - 3 * STAKE // 4
