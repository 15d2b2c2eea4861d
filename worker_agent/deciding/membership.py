"""Being known to the market: registered, bonded for duties, and paid out."""

from trainyard.protocol.ledger.book import Worker
from worker_agent.actions import Action, Send
from worker_agent.situation import ENDED, Situation, slots_of

# The largest fee that the market can store: nobody is drawn for as much.
NEVER_WEI = 2**96 - 1
_HOUR_S = 3600


def for_membership(s: Situation) -> list[Action]:
    known = s.book.workers.get(s.me)
    if known is None or known.env_class == bytes(32):
        return [] if s.is_paused else _register(s, known)
    if known.env_class != s.env_class:
        # This machine has changed: what it computes is no answer of that class any more.
        return [*_profile(s, known), *_duty(s, known), *_pay_out(s)]
    return [*_profile(s, known), *_bond(s, known), *_duty(s, known), *_pay_out(s)]


def _profile(s: Situation, known: Worker) -> list[Action]:
    """Say it when we are to be found elsewhere."""
    if not s.profile or known.profile == s.profile:
        return []
    # An operator may go back to what was before; but not within the hour.
    key = f"profile/{known.profile.hex()}/{s.profile.hex()}/{s.now // _HOUR_S}"
    return [Send(key, s.calls.set_profile(s.profile))]


def _register(s: Situation, known: Worker | None) -> list[Action]:
    bond = s.policy.bond
    if known is not None and known.unbonds_at:
        # It has retired, and has to take its bond back first.
        return []
    value = max(0, bond - s.credit)
    if value > s.purse:
        # Without a bond it may still train.
        bond = value = 0
    call = s.calls.register(s.profile, s.env_class, bond, value=value)
    return [Send(_anew(s, f"register/{s.env_class.hex()}/{bond}"), call)]


def _bond(s: Situation, known: Worker) -> list[Action]:
    missing = s.policy.bond - known.bond
    value = max(0, missing - s.credit)
    # What was lost of a bond, be it all, is not put down again: the operator should look first.
    has_lost = s.me in s.book.accounts and s.book.accounts[s.me].audits_wrong > 0
    if missing <= 0 or known.bond or has_lost or value > s.purse or s.is_paused:
        return []
    call = s.calls.add_bond(missing, value=value)
    return [Send(_anew(s, f"bond/{known.bond}"), call, adds_up=True)]


def _anew(s: Situation, key: str) -> str:
    """Whoever comes back after it has retired does all of it once more."""
    return f"{key}/after-{s.retired}" if s.retired else key


def _duty(s: Situation, known: Worker) -> list[Action]:
    # Who ends while it can be drawn would be silent, and pay for it.
    is_off = s.is_draining or known.env_class != s.env_class
    fee = NEVER_WEI if is_off else s.policy.min_audit_fee
    wanted = fee, s.policy.min_audit_for_s, s.policy.min_answer_for_s
    if (known.min_fee, known.min_audit_for, known.min_answer_for) == wanted or not known.bond:
        return []
    key = f"duty/{known.since}/" + "-".join(map(str, wanted))
    return [Send(key, s.calls.set_duty(*wanted))]


def _pay_out(s: Situation) -> list[Action]:
    """Take earnings home once no task is under way, whose stake they might be."""
    credit = s.credit
    is_busy = any(slots_of(task, s.me) for task in s.book.tasks.values() if task.state not in ENDED)
    if s.payout is None or credit <= 0 or is_busy:
        return []
    account = s.book.accounts[s.me]
    done = account.settled, account.failed, account.audits_right, account.audits_wrong
    # Also those that left no record, such as cancelled ones, so that no two are taken for one.
    joined = sum(any(slot.worker == s.me for slot in task.slots) for task in s.book.tasks.values())
    key = "withdraw/" + "-".join(map(str, (*done, joined, credit)))
    return [Send(key, s.calls.withdraw(s.payout, credit))]
