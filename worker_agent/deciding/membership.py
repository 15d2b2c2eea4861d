"""Being known to the market: registered, and bonded for duties."""

from trainyard.protocol.ledger.book import Worker
from worker_agent.actions import Action, Send
from worker_agent.deciding.fees import spare
from worker_agent.situation import Situation

# The largest fee that the market can store: nobody is drawn for as much.
NEVER_WEI = 2**96 - 1
_HOUR_S = 3600


def for_membership(s: Situation) -> list[Action]:
    known = s.book.workers.get(s.me)
    if known is None or known.env_class == bytes(32):
        return [] if s.is_paused else _register(s, known)
    if known.env_class != s.env_class:
        # This machine has changed: what it computes is no answer of that class any more.
        return [*_profile(s, known), *_duty(s, known)]
    return [*_profile(s, known), *_bond(s, known), *_duty(s, known)]


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
    if any(key.startswith("register/") for key in s.pending):
        # With what it takes along there may seem to be too little for a bond: that is no reason to
        # ask for another registration, which the market would refuse.
        return []
    value = max(0, bond - s.credit)
    if value > spare(s):
        # Without a bond it may still train.
        bond = value = 0
    call = s.calls.register(s.profile, s.env_class, bond, value=value)
    return [Send(_anew(s, f"register/{s.env_class.hex()}/{bond}"), call, stakes=bond > 0)]


def _bond(s: Situation, known: Worker) -> list[Action]:
    missing = s.policy.bond - known.bond
    value = max(0, missing - s.credit)
    # What was lost of a bond, be it all, is not put down again: the operator should look first.
    has_lost = s.me in s.book.accounts and s.book.accounts[s.me].audits_wrong > 0
    if missing <= 0 or known.bond or has_lost or value > spare(s) or s.is_paused:
        return []
    call = s.calls.add_bond(missing, value=value)
    return [Send(_anew(s, f"bond/{known.bond}"), call, adds_up=True, stakes=True)]


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
